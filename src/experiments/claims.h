// Who works on what, in a folder that any number of processes share, on one machine or several:
//   FOLDER/ID.N   a claim on ID: host, process; N counts the processes that took it on
// A claim is made by a hard link, which only one process can win. Its owner touches it every few seconds; a claim
// whose process is gone, or that nobody touched for two minutes where the process cannot be seen (another machine,
// another container), is void, and the next claim is ID.(N+1), which again only one process can win. So nothing has
// to be cleaned up after kill -9, and nothing depends on locks.
//
// What is asked of the file system, NFS included: link and rename are atomic, and a file that was closed is seen
// whole by whoever opens it then. Clocks of machines may differ: the age of a claim is taken by the clock of the
// folder's own file system. Where a listing is out of date (NFS keeps it up to a minute), work may be done twice;
// whoever stores its result second finds the first one there and leaves it.
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
  ~Claim();  // gives it back
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;
  const std::string& id() const { return id_; }
  bool first() const { return number_ == 1; }  // no earlier owner left it unfinished

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
  double seconds = 0;  // since it took the claim
  double silent = 0;   // since it touched it last
  bool alive = false;
};

class Claims {
 public:
  // `settled` says whether nothing is left to do for an id.
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
