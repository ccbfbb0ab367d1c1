#!/usr/bin/env bash
# Checks luma on a real GPU with what scripts/gpu-check-build has built: nothing is compiled here. Takes less
# than six minutes and little of the card's memory, but for some seconds in which requests must find it full.
# Prints one table and writes it, with the output of every check, to a folder.
#
#   scripts/gpu-check.sh [FOLDER]        default: target/gpu-check/results
#
# Exit status: 0 all is well, 1 a check failed, 2 there is nothing to check with.
set -uo pipefail
cd "$(dirname "$0")/.."

built=target/gpu-check
if [ ! -x "$built/luma" ]; then
    echo "scripts/gpu-check.sh: run scripts/gpu-check-build first" >&2
    exit 2
fi
results=${1:-$built/results}
mkdir -p "$results"
table=$results/table.txt
: >"$table"
failed=0
# All checks together; each gets no more than what is left.
end=$((SECONDS + 345))

say() { echo "$*" | tee -a "$table"; }

# check NAME LIMIT COMMAND...: runs it, and says how it went.
check() {
    local name=$1 limit=$2 left=$((end - SECONDS)) start status
    shift 2
    if ((left < 3)); then
        say "$(printf '%-36s left out: no time is left' "$name")"
        failed=1
        return
    fi
    ((limit < left)) || limit=$left
    start=$(date +%s.%N)
    timeout --kill-after=2 "$limit" "$@" >"$results/$name.txt" 2>&1
    status=$?
    say "$(printf '%-36s %-10s %8.2f s' "$name" "$(outcome $status)" "$(echo "$(date +%s.%N) $start" | awk '{ print $1 - $2 }')")"
    if ((status != 0)); then
        failed=1
        # The suite's programs name what fails in lines of their own.
        [[ $name == suite.* ]] && return
        tail -n 4 "$results/$name.txt" | sed 's/^/    /' | tee -a "$table"
    fi
}

outcome() {
    case $1 in
    0) echo ok ;;
    124 | 137) echo "TIMED OUT" ;;
    *) echo "FAILED ($1)" ;;
    esac
}

say "device: $(nvidia-smi --query-gpu=name,memory.total,driver_version --format=csv,noheader 2>/dev/null | head -n 1)"
check doctor 20 "$built/luma" doctor
if ! grep -q '^backend  *cuda' "$results/doctor.txt"; then
    say "luma finds no CUDA device here: there is nothing to check"
    exit 2
fi

for program in "$built"/c/*; do
    case $(basename "$program") in
    choice) check c.choice 20 "$program" cuda ;;
    # By seeds, below.
    stream_stress) ;;
    *) check "c.$(basename "$program")" 30 "$program" ;;
    esac
done
check cuda.contents 90 "$built/cuda/contents" 20000 16384
check cuda.runtime 30 "$built/cuda/runtime"
# Seed, streams a device, threads, devices, operations a thread.
for seed in 1 2 3; do
    check "c.stream_stress.$seed" 30 "$built/c/stream_stress" "$seed" $((4 * seed)) $((2 * seed)) 1 4000
done
# The last part fills the card, but for two gigabytes, for a second or two.
check cuda.stream_kernels 60 "$built/cuda/stream_kernels" 20000 full
check cuda.timing 60 "$built/cuda/timing" 200
for trace in "$built"/traces/*.csv; do
    check "replay.$(basename "$trace" .csv)" 30 "$built/luma" replay --backend cuda --runs 3 "$trace"
done
# Where board and double answer differently is the most valuable line of all.
for program in "$built"/suite/*; do
    name=suite.$(basename "$program")
    check "$name" 30 "$program" gpa
    grep -h '^FAIL' "$results/$name.txt" | sed 's/^/    /' | tee -a "$table"
done

say ""
say "microseconds a round (allocate, fill by a kernel, free):"
sed 's/^/    /' "$results/cuda.timing.txt" | tee -a "$table"
say "replays:"
sed -s -n '1,2p' "$results"/replay.*.txt | grep -v '^trace' | sed 's/^/    /' | tee -a "$table"
exit $failed
