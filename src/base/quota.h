// The share of a machine that control groups (version 2) grant, as to a container or a systemd unit.
#pragma once

#include <string>

namespace lacuna {

// Processors, rounded up: the least quota of the group that the file `groups` names and of those around it; 0 = none.
// `root` contains the groups.
int processor_quota(const std::string& groups = "/proc/self/cgroup",
                    const std::string& root = "/sys/fs/cgroup");

}  // namespace lacuna
