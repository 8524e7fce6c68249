// Claims on pieces of work in a folder that any number of processes share, on one machine or several:
//   FOLDER/ID.N   a claim on ID: host, process; N counts the processes that have claimed it
// A claim is a hard link, which only one process can create. Its owner touches it every few seconds. A claim is void if
// its process is gone, or, if the process cannot be seen (another machine, another container), after two minutes
// without a touch. The next claim is then ID.(N+1), which again only one process can create. So nothing has to be
// cleaned up after kill -9, and no locks are needed.
//
// Requirements on the file system, NFS included: link and rename are atomic, and a closed file is seen whole by a
// process that opens it afterwards. Clocks of machines may differ: the age of a claim is measured by the clock of the
// folder's file system. If a directory listing is out of date (on NFS by up to a minute), work may be done twice; the
// second process to store its result finds the first one's and leaves it.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace lacuna {

class Claim {
 public:
  Claim(std::string folder, std::string id, long number);
  ~Claim();  // releases it
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;
  const std::string& id() const { return id_; }
  bool first() const { return number_ == 1; }  // no earlier owner abandoned it

 private:
  std::string folder_, id_;
  long number_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ending_ = false;
  std::thread heart_;
};

struct Owner {
  std::string host;
  long pid = 0;
  double seconds = 0;  // since it claimed
  double silent = 0;   // since its last touch
  bool alive = false;
};

class Claims {
 public:
  // `settled` tells whether nothing is left to do for an id.
  Claims(std::string folder, std::function<bool(const std::string& id)> settled);  // makes the folder

  // The right to work on it, or null if it is settled or a live process has it.
  std::unique_ptr<Claim> take(const std::string& id) const;
  bool taken(const std::string& id) const;      // by a live process
  std::map<std::string, Owner> owners() const;  // of the newest claim on each id that is not settled
  void sweep() const;                           // removes what killed processes left behind

 private:
  std::string folder_;
  std::function<bool(const std::string&)> settled_;
};

// A short name of the processes that can see each other: for scratch files, beside the process number.
std::string world_tag();

}  // namespace lacuna
