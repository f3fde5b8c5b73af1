#!/bin/sh
# Two hosts on one machine, each a network namespace with a name of its own: hosta runs the command, which reaches
# hostb by the program $LAUNCH_AGENT instead of ssh. All of it is gone when the command ends.
#
#   unshare --net --uts --mount tests/distributed/two_hosts.sh FOLDER COMMAND...
set -eu
folder=$1
shift
hostname hosta
printf '127.0.0.1 localhost\n10.77.0.1 hosta\n10.77.0.2 hostb\n' > "$folder/hosts"
mount --bind "$folder/hosts" /etc/hosts

mkfifo "$folder/ready"
unshare --net --uts sh -c "hostname hostb; echo > '$folder/ready'; exec sleep 1000" &
hostb=$!
trap 'kill $hostb' EXIT
read -r _ < "$folder/ready"

ip link add name here type veth peer name there netns "$hostb"
ip addr add 10.77.0.1/24 dev here
ip link set here up
ip link set lo up
nsenter --target "$hostb" --net sh -eu -c \
  'ip addr add 10.77.0.2/24 dev there; ip link set there up; ip link set lo up'

# It is given what ssh would be: the host, then the command.
export LAUNCH_AGENT="$folder/agent"
printf '#!/bin/sh\n[ "$1" = hostb ] || { echo "there is no host $1" >&2; exit 1; }\nshift\n' > "$LAUNCH_AGENT"
printf 'exec nsenter --target %s --net --uts sh -c "$*"\n' "$hostb" >> "$LAUNCH_AGENT"
chmod +x "$LAUNCH_AGENT"
export PRTE_MCA_plm_ssh_agent="$LAUNCH_AGENT"
"$@"
