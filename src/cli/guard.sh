# Ends COMMAND when holdfast is gone or silent: nothing runs on without the lock.
# $1: "group" (COMMAND leads a process group of its own) or "tree" (COMMAND and its descendants, one by one)
# $2: the process id of COMMAND
# $3: tenths of a second from TERM to KILL
# Input: a line for each renewed lease, the seconds from now until TERM and from there until KILL. Its only writer is
# holdfast, so the end of the file means that holdfast is dead. Output: a line when silence has ended COMMAND. This process leads a session of its own, so neither Ctrl-Z
# nor a signal for COMMAND's group reaches it.
trap '' HUP INT QUIT TERM TSTP TTIN TTOU PIPE
kind=$1 target=$2 timer= known=

# "pid parent state start" of every process. With the start, an id that is used again is not taken for the old process.
processes() {
  if [ -r /proc/self/stat ]; then
    # proc(5): the command stands in parentheses and may hold anything; the fields are counted from behind it.
    cat /proc/[0-9]*/stat | awk '{ pid = $1; sub(/^.*\) /, ""); print pid, $2, $1, $20 }'
  else
    ps -A -o pid= -o ppid= -o stat= -o lstart= | awk '{ print $1, $2, $3, $4 "_" $5 "_" $6 "_" $7 "_" $8 }'
  fi
} 2>/dev/null

# "pid/start" of the target and its descendants that still run. Those seen before are in $known: a child whose parent has
# ended is nobody's descendant any more.
tree() {
  processes | awk -v target="$target" -v known="$known" '
    $3 !~ /^Z/ { parent[$1] = $2; start[$1] = $4 }
    END {
      count = split(known, each, " ")
      for (at = 1; at <= count; at++) {
        split(each[at], part, "/")
        if (start[part[1]] == part[2]) member[part[1]]
      }
      if (!count && target in start) member[target]
      do {
        grown = 0
        for (pid in parent) if (!(pid in member) && parent[pid] in member) { member[pid]; grown = 1 }
      } while (grown)
      for (pid in member) print pid "/" start[pid]
    }'
}

# $@: signals, one after the other, for all that belong to COMMAND.
send() {
  [ "$kind" = group ] || known=$(tree)
  for signal in "$@"; do
    if [ "$kind" = group ]; then
      kill "-$signal" "-$target"
    else
      for each in $known; do kill "-$signal" "${each%/*}"; done
    fi
  done
} 2>/dev/null

gone() {
  if [ "$kind" = group ]; then ! kill -0 "-$target"; else [ -z "$(tree)" ]; fi
} 2>/dev/null

# CONT: a stopped one acts on TERM only when it goes on, and the lease still covers that.
terminate() {
  send TERM CONT
}

# Sleeps so that USR1 ends it at once and leaves no sleep behind.
nap() {
  sleep "$1" &
  wait "$!"
}

countdown() {
  trap 'kill -KILL "$!"; exit 0' USR1 # not TERM: sleep ignores it as we do
  nap "$1"
  echo silence
  terminate
  nap "$2"
  send KILL
} 2>/dev/null

disarm() {
  [ -n "$timer" ] || return 0
  kill -USR1 "$timer"
  wait "$timer"
  timer=
} 2>/dev/null

while read -r until_term until_kill; do
  disarm
  countdown "$until_term" "$until_kill" &
  timer=$!
done

disarm
terminate
tenths=$3
while [ "$tenths" -gt 0 ] && ! gone; do
  sleep 0.1
  tenths=$((tenths - 1))
done
gone || send KILL
