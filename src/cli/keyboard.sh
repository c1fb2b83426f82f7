# Tells the signals of the keyboard from others: Ctrl-C goes to the whole process group, so to this process as well, while
# `kill -INT` reaches only the one it names. Writes a line per signal; ends with its input.
trap 'heard=yes; echo INT' INT
trap 'heard=yes; echo QUIT' QUIT
while :; do
  heard=
  # A signal ends `read` too, and shells differ in what it then returns.
  read -r line || [ -n "$heard" ] || exit 0
done
