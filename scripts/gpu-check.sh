#!/usr/bin/env bash
# Checks luma on a real GPU with what scripts/gpu-check-build has built: nothing is compiled here. Takes less
# than seven minutes and little of the card's memory, but for some seconds in which requests must find it full.
# Prints one table and writes it, with the output of every check, to a folder.
#
# Programs that know nothing of luma run plain, and under libluma_interpose.so (`preload.`), where they may fail in
# nothing that they did not fail in before but for what crates/interpose/tests/clients/differences.txt lists.
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
end=$((SECONDS + 405))

say() { echo "$*" | tee -a "$table"; }

# run NAME LIMIT COMMAND...: runs it. Sets `status`, in words `outcome`, and `seconds`; 1 also where no time is left.
run() {
    local name=$1 limit=$2 left=$((end - SECONDS)) start
    shift 2
    seconds=0 status=1 outcome="left out: no time is left"
    if ((left < 3)); then
        : >"$results/$name.txt"
        return
    fi
    ((limit < left)) || limit=$left
    start=$(date +%s.%N)
    timeout --kill-after=2 "$limit" "$@" >"$results/$name.txt" 2>&1
    status=$?
    seconds=$(echo "$(date +%s.%N) $start" | awk '{ print $1 - $2 }')
    case $status in
    0) outcome=ok ;;
    124 | 137) outcome="TIMED OUT" ;;
    *) outcome="FAILED ($status)" ;;
    esac
}

# row NAME OUTCOME: says how it went.
row() { say "$(printf '%-36s %-16s %8.2f s' "$1" "$2" "$seconds")"; }

# check NAME LIMIT COMMAND...: runs it, and says how it went.
check() {
    run "$@"
    row "$1" "$outcome"
    if ((status != 0)); then
        failed=1
        # The suite's programs name what fails in lines of their own.
        [[ $1 == suite.* ]] && return
        tail -n 4 "$results/$1.txt" | sed 's/^/    /' | tee -a "$table"
    fi
}

# failures NAME: what failed in it, without what differs from run to run: rules of the suite, or checks of a
# program in CUDA.
failures() {
    sed -n -e 's/^FAIL \([^:]*\):.*/\1/p' -e 's|^\(.*/\)\{0,1\}\([a-z_]*\.cu\):[0-9]*: |\2: |p' "$results/$1.txt" | sort -u
}

listed() {
    awk -F ' [|] ' '!/^#/ { sub(/ [(]by chance[)]/, "", $1); print $1; print $1 ": " $2 }' crates/interpose/tests/clients/differences.txt | sort -u
}

# check_preloaded NAME LIMIT COMMAND...: a program that just ran as NAME, under luma. All is not well if it fails
# in more than it did, but for what is listed, or ends in another way.
check_preloaded() {
    local name=$1 plain=$status more
    shift
    run "preload.$name" "$1" env LD_PRELOAD="$PWD/$built/lib/libluma_interpose.so" "${@:2}"
    more=$(comm -13 <(sort -u <(failures "$name") <(listed)) <(failures "preload.$name"))
    if [ -n "$more" ]; then
        row "preload.$name" DIFFERS
        sed 's/^/    only under luma: /' <<<"$more" | tee -a "$table"
    elif ((status == plain)); then
        row "preload.$name" "as plain"
        return
    elif ((status == 1)) && [ -n "$(failures "preload.$name")" ]; then
        row "preload.$name" "as listed"
        return
    else
        row "preload.$name" "$outcome"
        tail -n 4 "$results/preload.$name.txt" | sed 's/^/    /' | tee -a "$table"
    fi
    failed=1
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
# luma's own programs: the library that is preloaded has luma's functions, too.
check cuda.contents 90 "$built/cuda/contents" 20000 16384
check_preloaded cuda.contents 90 "$built/cuda/contents" 20000 16384
check cuda.runtime 30 "$built/cuda/runtime"
check_preloaded cuda.runtime 30 "$built/cuda/runtime"
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
    # One process for many rules is faster; two programs count what a whole process does.
    together=(--together)
    case $name in
    suite.contents | suite.double) together=() ;;
    esac
    check_preloaded "$name" 30 "$program" gpa "${together[@]}"
done
# What they check beside may be true of the double alone: only what luma changes counts.
for program in "$built"/clients/*; do
    name=client.$(basename "$program")
    args=()
    [[ $name == client.per_thread.* ]] && args=(legacy)
    run "$name" 30 env CHECK_GOES_ON=1 "$program" "${args[@]}"
    count=$(failures "$name" | wc -l)
    ((count == 0)) || outcome+=", $count not so"
    row "$name" "$outcome"
    check_preloaded "$name" 30 env CHECK_GOES_ON=1 "$program" "${args[@]}"
done
if python3 -c 'import torch' 2>/dev/null; then
    for way in "" --graph; do
        # shellcheck disable=SC2086 # No option is no argument.
        check "torch.plain$way" 60 python3 examples/pytorch/transformer.py --check $way
        # shellcheck disable=SC2086
        check_preloaded "torch.plain$way" 60 python3 examples/pytorch/transformer.py --check $way
        # shellcheck disable=SC2086
        check "torch.pluggable$way" 60 python3 examples/pytorch/train_on_luma.py "$built/lib/libluma.so" --check $way
    done
else
    say "$(printf '%-36s left out: python3 finds no torch here' torch)"
fi

say ""
say "microseconds a round (allocate, fill by a kernel, free):"
sed 's/^/    /' "$results/cuda.timing.txt" | tee -a "$table"
say "replays:"
sed -s -n '1,2p' "$results"/replay.*.txt | grep -v '^trace' | sed 's/^/    /' | tee -a "$table"
exit $failed
