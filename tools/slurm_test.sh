#!/bin/bash
# usage: tools/slurm_test.sh LACUNA [TASKS]
# Starts a Slurm of one node in a temporary folder (needs root and Debian's slurm-wlm and munge), submits the script that
# `lacuna bench slurm` prints, kills one of its tasks, submits that one again, then the last job, and compares every file
# that may not depend on who ran what with those of one process. Exit code 0: all the same.
set -eu
lacuna=$(readlink -f "$1") tasks=${2:-4}
for program in sbatch slurmctld slurmd munged; do
  PATH=$PATH:/usr/sbin command -v $program >/dev/null || { echo "$program is missing: apt-get install slurm-wlm munge" >&2; exit 1; }
done
PATH=$PATH:/usr/sbin
folder=$(mktemp -d) host=$(hostname -s) started=()
stop() {
  for ((k = ${#started[@]} - 1; k >= 0; --k)); do kill "${started[$k]}" 2>/dev/null || true; done
  wait 2>/dev/null || true
  rm -rf "$folder"
}
trap stop EXIT

# Authentication, controller and node, each with its files in the folder and ports of its own.
mkdir "$folder"/{munge,state,spool}
chmod 700 "$folder/munge" && chmod 755 "$folder"
dd if=/dev/urandom of="$folder/munge/key" bs=1 count=1024 2>/dev/null
chmod 400 "$folder/munge/key"
munged --foreground --force --key-file="$folder/munge/key" --socket="$folder/munge/socket" --seed-file="$folder/munge/seed" \
  --pid-file="$folder/munge/pid" --log-file="$folder/munge/log" >"$folder/munged.log" 2>&1 &
started+=($!)
port=$((20000 + RANDOM % 20000))
cat >"$folder/slurm.conf" <<END
ClusterName=lacuna
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket
CredType=cred/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
ReturnToService=2
MinJobAge=3600
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) RealMemory=$(($(grep MemAvailable /proc/meminfo | tr -dc 0-9) / 1024)) State=UNKNOWN
PartitionName=main Nodes=$host Default=YES MaxTime=INFINITE State=UP
END
echo "CgroupPlugin=cgroup/v1" >"$folder/cgroup.conf"  # never used, and the other one wants systemd
export SLURM_CONF=$folder/slurm.conf
for ((i = 0; i < 100; ++i)); do [ -S "$folder/munge/socket" ] && break; sleep .1; done
slurmctld -D -c >"$folder/slurmctld.log" 2>&1 &
started+=($!)
slurmd -D -c -N "$host" >"$folder/slurmd.log" 2>&1 &
started+=($!)
for ((i = 0; i < 300; ++i)); do sinfo -h -o %t 2>/dev/null | grep -q '^idle' && break; sleep .1; done
sinfo -h -o %t | grep -q '^idle' || { echo "the node does not come up:"; tail "$folder"/slurm*.log; exit 1; }

cd "$folder"
"$lacuna" data simulate tiny.npz --rows 400 --views 3 --labels 8 --sizes 30,20,10 >log 2>&1
table=(table --data tiny.npz --methods prior,naim3l,lacuna --set lacuna.epochs=10 --repeats 6 --threads 1)
"$lacuna" bench "${table[@]}" --out whole >whole.txt 2>>log
"$lacuna" bench slurm "${table[@]}" --out shared --tasks "$tasks" >job.sbatch
grep '^#SBATCH' job.sbatch
job=$(sbatch --parsable job.sbatch)
# One task is killed as soon as it has a cell at work; the others go on.
for ((i = 0; i < 600; ++i)); do [ -n "$(squeue -h -t R -j "${job}_1" 2>/dev/null)" ] && ls shared/claims/*.1 >/dev/null 2>&1 && break; sleep .05; done
scancel --signal=KILL --full "${job}_1" 2>/dev/null || true
while [ -n "$(squeue -h -j "$job" 2>/dev/null)" ]; do sleep .2; done
"$lacuna" bench status shared
sbatch --wait --array=1 job.sbatch
"$lacuna" bench status shared
sbatch --wait --array=1 job.sbatch last
differ=0
for file in $(cd whole && find cells -name '*.json' ! -name run.json); do
  cmp -s "whole/$file" "shared/$file" || { echo "differs: $file"; differ=1; }
done
[ "$(ls whole/cells)" = "$(ls shared/cells)" ] || { echo "other cells"; differ=1; }
[ -z "$(ls -A shared/claims)" ] || { echo "claims are left"; differ=1; }
last=$(ls -t slurm-*.out | head -1)
grep -qF "$(head -3 whole.txt | tail -1)" "$last" || { echo "the last job printed another table: $last"; cat "$last"; differ=1; }
echo "$tasks tasks, one killed; $(ls whole/cells | wc -l) cells; $([ $differ = 0 ] && echo 'the same files' || echo 'files differ')"
exit $differ
