#include "cli/training_run.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <filesystem>

#include "base/clock.h"
#include "base/disk.h"
#include "base/error.h"
#include "base/leftovers.h"
#include "base/text.h"
#include "cli/learning.h"
#include "cli/text_out.h"

namespace lacuna::cli {
namespace {

constexpr double kTrainingShare = 9;  // seconds of training for a second of writing checkpoints
constexpr double kAnswer = .5;  // seconds that a signal leaves other ranks to answer; mpirun kills after one
constexpr const char* kRun = "run";  // key of our part of a checkpoint's metadata

std::atomic<int> caught_signal{0};  // any thread may be the one that the signal interrupts
void remember(int signal) {
  caught_signal = signal;
}

}  // namespace

void RunOptions::declare(Options& options) {
  const auto group = options.group("running");
  options.add("resume", resume, "continue an interrupted training from MODEL.checkpoint, to the same bits")
      .common();
  options
      .add("checkpoint-every", checkpoint_every,
           "seconds between checkpoints, more if writing would take a tenth of the time; 0 = after every "
           "epoch")
      .range(0, 1e9)
      .metavar("SECONDS");
  options
      .add("time-limit", time_limit,
           "stop after the epoch in which training exceeds this many seconds, counted for each member of an "
           "ensemble, and keep the best epoch (0 = none)")
      .range(0, 1e9)
      .metavar("SECONDS")
      .excludes("share");
  options
      .add("share", share,
           "share the members of an ensemble among processes: start the same command several times; finished "
           "members are in MODEL.members")
      .excludes("resume");
}

TrainingRun::TrainingRun(const RunOptions& options, std::string model_path, nlohmann::json fingerprint,
                         Progress& progress, Ranks& ranks)
    : options_(options),
      model_path_(std::move(model_path)),
      path_(is_stream_path(model_path_) || options.share ? "" : model_path_ + kCheckpointEnding),
      fingerprint_(std::move(fingerprint)),
      progress_(progress),
      ranks_(ranks),
      last_checkpoint_(steady_seconds()) {
  if (options_.share) members_.emplace(model_path_ + ".members", fingerprint_);
  if (!path_.empty() && ranks_.leads()) {
    remove_leftovers(path_);
    remove_leftovers(model_path_);
  }
  if (options_.resume && !path_.empty()) read_checkpoint();
  if (!options_.resume && ranks_.leads() && std::filesystem::exists(path_))
    fail(Exit::usage,
         "{}: an unfinished training left this checkpoint, or is still running; --resume continues it; to "
         "start over, remove the file",
         path_);
  check_ranks();
}

void TrainingRun::read_checkpoint() {
  if (!std::filesystem::exists(path_)) {
    tell(path_, {"there is no checkpoint; starting from the beginning"});
    return;
  }
  try {
    resumed_ = Tensors::read(path_);
  } catch (const Error& error) {
    if (error.code() != Exit::data) throw;
    fail(Exit::data, "{}; the checkpoint is damaged and cannot be continued from: remove it to start over",
         error.what());
  }
  const auto& meta = resumed_->metadata;
  if (!meta.contains(kRun) || !meta[kRun].is_object() || !meta[kRun].contains("fingerprint") ||
      !meta[kRun].contains("history") || !meta[kRun]["history"].is_array())
    fail(Exit::data, "{}: is not a checkpoint of lacuna train", path_);
  if (meta[kRun]["fingerprint"] != fingerprint_)
    fail(Exit::usage,
         "{}: was made by another training: {}; use the same settings and data, or remove the checkpoint",
         path_, differences(meta[kRun]["fingerprint"], fingerprint_));
  history_ = meta[kRun]["history"];
  tell("", {fmt::format("continuing from {} after {} epochs", path_, history_.size())});
}

// Ranks that see other data, or another checkpoint, would each compute something else.
void TrainingRun::check_ranks() const {
  nlohmann::json seen = {{"fingerprint", fingerprint_}};
  if (resumed_) seen["checkpoint"] = resumed_->metadata;
  const auto all = all_gather(ranks_, seen.dump());
  for (std::size_t r = 1; r < all.size(); ++r)
    if (all[r] != all[0])
      fail(Exit::usage, "rank {} does not see what rank 0 sees: {}; all ranks need the same files", r,
           differences(nlohmann::json::parse(all[0]), nlohmann::json::parse(all[r])));
}

TrainingRun::~TrainingRun() {
  if (!catching_) return;
  ranks_.while_waiting = nullptr;
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

void TrainingRun::catch_signals() {
  if (!ranks_.leads()) {  // rank 0 decides
    std::signal(SIGINT, SIG_IGN);
    std::signal(SIGTERM, SIG_IGN);
    return;
  }
  catching_ = true;
  caught_signal = 0;
  ranks_.while_waiting = [this] { check_waiting(); };
  struct sigaction action {};
  action.sa_handler = remember;
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // a second signal ends the program at once
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  std::signal(SIGXFSZ, SIG_IGN);  // a file size limit is then an error of write(), as a full disk is
}

// mpirun ends what is left of a run when one of its ranks has died: with a signal, and soon after by force.
void TrainingRun::check_waiting() {
  if (caught_signal == 0) return;
  if (silence_since_ == 0) silence_since_ = steady_seconds();
  if (steady_seconds() - silence_since_ < kAnswer) return;
  progress_.finish();
  fail(caught_signal == SIGTERM ? Exit::terminated : Exit::interrupted,
       "stopped by {}, and other ranks do not answer; {}", caught_signal == SIGTERM ? "SIGTERM" : "SIGINT",
       path_.empty() || !std::filesystem::exists(path_)
           ? "there is no checkpoint yet"
           : fmt::format(
                 "the last checkpoint is in {}: the same command with --resume continues from it, with any "
                 "number of ranks",
                 path_));
}

void TrainingRun::before_training(std::uint64_t snapshot_bytes, std::uint64_t model_bytes) {
  // The old checkpoint stays until the new one is whole, so that there are two for a moment.
  if (path_.empty()) return;
  const std::uint64_t needed = 2 * snapshot_bytes + model_bytes, available = free_bytes(path_);
  if (available < needed)
    fail(Exit::failed, "{}: the model and its checkpoints need {}, the disk has {} left", model_path_,
         bytes_text(static_cast<double>(needed)), bytes_text(static_cast<double>(available)));
}

void TrainingRun::checkpoint(FunctionRef<void(Tensors&)> snapshot) {
  const double begin = steady_seconds();
  Tensors file;
  snapshot(file);
  file.metadata[kRun] = {{"fingerprint", fingerprint_}, {"history", history_}};
  file.write(path_);
  last_checkpoint_ = steady_seconds();
  checkpoint_seconds_ = last_checkpoint_ - begin;
}

void TrainingRun::checkpoint_if_due(FunctionRef<void(Tensors&)> snapshot) {
  if (caught_signal != 0) {
    const int signal = caught_signal;
    progress_.finish();
    if (members_)
      throw Error(signal == SIGTERM ? Exit::terminated : Exit::interrupted,
                  fmt::format("stopped by {}; members that are done are in {}: the same command continues",
                              signal == SIGTERM ? "SIGTERM" : "SIGINT", members_->path()));
    if (path_.empty())
      throw Error(
          signal == SIGTERM ? Exit::terminated : Exit::interrupted,
          fmt::format(
              "stopped by {}; nothing is written: {} is not a file, so there is no checkpoint next to it",
              signal == SIGTERM ? "SIGTERM" : "SIGINT", model_path_));
    checkpoint(snapshot);
    throw Error(signal == SIGTERM ? Exit::terminated : Exit::interrupted,
                fmt::format("stopped by {}; {} is written: the same command with --resume continues from it",
                            signal == SIGTERM ? "SIGTERM" : "SIGINT", path_));
  }
  // Gigabytes take seconds to write: they get a tenth of the time at most, unless every epoch was asked for.
  const double pause = options_.checkpoint_every > 0
                           ? std::max(options_.checkpoint_every, kTrainingShare * checkpoint_seconds_)
                           : 0;
  if (path_.empty() || steady_seconds() - last_checkpoint_ < pause) return;
  try {
    checkpoint(snapshot);
  } catch (const Error& error) {  // the last good checkpoint is still there, and so is the work in memory
    progress_.finish();
    fmt::print(stderr, "lacuna: no checkpoint this time, training continues: {}\n", error.what());
    last_checkpoint_ = steady_seconds();
  }
}

void TrainingRun::after_step(FunctionRef<void(Tensors&)> snapshot) {
  if (caught_signal != 0 || options_.checkpoint_every > 0) checkpoint_if_due(snapshot);
}

void TrainingRun::remark(const std::string& text) {
  remarks_.push_back(text);
  tell("", {text});
}

void TrainingRun::earlier_epoch(const EpochRecord& record) {
  history_.push_back(epoch_json(record));
  progress_.epoch(record);
}

bool TrainingRun::after_epoch(const EpochRecord& record, FunctionRef<void(Tensors&)> snapshot) {
  earlier_epoch(record);
  checkpoint_if_due(snapshot);
  return options_.time_limit == 0 || record.seconds < options_.time_limit;
}

void TrainingRun::remove_checkpoint() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

}  // namespace lacuna::cli
