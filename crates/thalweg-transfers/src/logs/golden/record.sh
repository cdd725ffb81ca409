#!/usr/bin/env bash
# Records the logs in this directory with the real programs: two network namespaces, 192.0.2.1 (server) and 192.0.2.7 (client), with
# 8 Mbit/s between them. Needs root, and the Debian packages that README.md lists. Names of formats as arguments record only those:
#
#   sudo ./record.sh rsync nginx
#
# Then: THALWEG_REFRESH_GOLDEN=1 cargo test -p thalweg-transfers golden
set -euo pipefail
cd "$(dirname "$0")"
readonly OUT=$PWD
readonly WORK=$(mktemp -d /tmp/transfer-logs.XXXXXX)
export TZ=UTC LC_ALL=C
chmod 755 "$WORK"

server() { ip netns exec tl-server "$@"; }
client() { ip netns exec tl-client "$@"; }
pids=()
# Runs a program in the namespace of the server until the end.
serve() {
  ip netns exec tl-server "$@" >> "$WORK/serve.log" 2>&1 &
  pids+=($!)
}

cleanup() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  for ns in tl-server tl-client; do
    ip netns del $ns 2>/dev/null || true
    rm -rf "/etc/netns/$ns"
  done
}
trap cleanup EXIT

setup() {
  cd "$WORK"
  # The names of the hosts, without DNS.
  for ns in tl-server tl-client; do
    mkdir -p /etc/netns/$ns
    printf '%s\n' '127.0.0.1 localhost' '192.0.2.1 dtn1' '192.0.2.7 dtn2' > /etc/netns/$ns/hosts
    : > /etc/netns/$ns/resolv.conf
    ip netns add $ns
  done
  echo "192.0.2.1 $(hostname)" >> /etc/netns/tl-server/hosts
  echo "192.0.2.7 $(hostname)" >> /etc/netns/tl-client/hosts
  ip link add tl0 netns tl-server type veth peer name tl0 netns tl-client
  server ip addr add 192.0.2.1/24 dev tl0
  client ip addr add 192.0.2.7/24 dev tl0
  for side in server client; do
    $side ip link set lo up
    $side ip link set tl0 up
    $side tc qdisc add dev tl0 root tbf rate 8mbit burst 16kb latency 200ms
  done
  mkdir -p "$WORK/data" "$WORK/in"
  head -c 1000000 /dev/urandom > "$WORK/data/small.bin"
  head -c 3000000 /dev/urandom > "$WORK/data/large.bin"
  cp "$WORK/data/small.bin" "$WORK/data/with space.bin"
  chmod -R a+rwX "$WORK"
}

wait_port() {
  for _ in $(seq 100); do
    client bash -c "exec 3<>/dev/tcp/192.0.2.1/$1" 2>/dev/null && return
    sleep 0.1
  done
  echo "record.sh: nothing listens on port $1: $(tail -n 5 "$WORK/serve.log")" >&2
  return 1
}

gridftp() {
  local dir=$WORK/gridftp
  mkdir -p "$dir"; chmod 777 "$dir"
  serve globus-gridftp-server -s -aa -anonymous-user nobody -p 2811 -hostname dtn1 \
    -log-transfer "$dir/transfer.log" -logfile "$dir/main.log" -log-level ALL
  wait_port 2811
  local url=ftp://192.0.2.1:2811$WORK
  client globus-url-copy "$url/data/small.bin" "file://$dir/1"
  client globus-url-copy -p 4 -tcp-bs 262144 "$url/data/large.bin" "file://$dir/2"
  client globus-url-copy "file://$WORK/data/small.bin" "$url/in/up.bin"
  client globus-url-copy "$url/data/with%20space.bin" "file://$dir/3"
  client globus-url-copy "$url/data/" "file://$dir/all/" -cd || true
  client globus-url-copy "$url/data/missing.bin" "file://$dir/4" || true
  client timeout 1 globus-url-copy "$url/data/large.bin" "file://$dir/5" || true
  client timeout 1 globus-url-copy "file://$WORK/data/large.bin" "$url/in/cut.bin" || true
  sleep 2
  cp "$dir/transfer.log" "$OUT/gridftp.log"
  cp "$dir/main.log" "$OUT/gridftp-main.log"
}

xrootd() {
  local dir=$WORK/xrootd
  mkdir -p "$dir"; chmod 777 "$dir"
  cat > "$dir/xrootd.cfg" <<END
all.export $WORK
all.adminpath $dir
all.pidpath $dir
xrd.port 1094
xrootd.trace fs fsio login
END
  serve xrootd -R nobody -c "$dir/xrootd.cfg" -l "$dir/xrootd.log" -n transfers
  wait_port 1094
  local url=root://192.0.2.1:1094/$WORK
  client xrdcp -f "$url/data/small.bin" "$dir/1"
  client xrdcp -f -S 4 "$url/data/large.bin" "$dir/2"
  client xrdcp -f "$WORK/data/small.bin" "$url/in/xup.bin"
  client xrdcp -f "$url/data/small.bin" "$url/data/large.bin" "$dir/"
  client xrdcp -f "$url/data/missing.bin" "$dir/3" || true
  client timeout 1 xrdcp -f "$url/data/large.bin" "$dir/4" || true
  client timeout 1 xrdcp -f "$WORK/data/large.bin" "$url/in/xcut.bin" || true
  sleep 2
  find "$dir" -name xrootd.log -exec cat {} + > "$OUT/xrootd.log"
}

rsync() {
  local dir=$WORK/rsync
  mkdir -p "$dir"
  echo 'ada:secret' > "$dir/secrets"; chmod 600 "$dir/secrets"
  echo secret > "$dir/password"; chmod 600 "$dir/password"
  cat > "$dir/rsyncd.conf" <<END
log file = $dir/daemon.log
transfer logging = yes
reverse lookup = no
use chroot = no
uid = root
gid = root
[data]
  path = $WORK/data
[in]
  path = $WORK/in
  read only = no
  auth users = ada
  secrets file = $dir/secrets
END
  serve rsync --daemon --no-detach --config="$dir/rsyncd.conf"
  wait_port 873
  local url=rsync://192.0.2.1
  local format='%o %h [%a] %m (%u) %f %l'
  client rsync -a --log-file="$dir/client.log" --log-file-format="$format" "$url/data/small.bin" "$dir/1"
  client rsync -a --log-file="$dir/client.log" --log-file-format="$format" "$url/data/" "$dir/all/"
  client rsync -a --log-file="$dir/client.log" --log-file-format="$format" --password-file="$dir/password" \
    "$WORK/data/small.bin" rsync://ada@192.0.2.1/in/
  client rsync -a --log-file="$dir/default.log" "$url/data/large.bin" "$dir/2"
  client rsync -a --log-file="$dir/default.log" "$url/data/large.bin" "$dir/2"
  client rsync "$url/" > /dev/null
  client rsync -a --log-file="$dir/client.log" --log-file-format="$format" "$url/data/missing.bin" "$dir/3" || true
  client timeout 1 rsync -a --log-file="$dir/client.log" --log-file-format="$format" "$url/data/large.bin" "$dir/4" || true
  client timeout -s KILL 1 rsync -a --password-file="$dir/password" "$WORK/data/large.bin" rsync://ada@192.0.2.1/in/ || true
  client rsync -a rsync://ada@192.0.2.1/in/ "$dir/5" --password-file=/dev/null || true
  sleep 2
  cp "$dir/daemon.log" "$OUT/rsync-daemon.log"
  cp "$dir/client.log" "$OUT/rsync-client.log"
  cp "$dir/default.log" "$OUT/rsync-client-default.log"
}

ftp_user() {
  id ada >/dev/null 2>&1 || useradd -d "$WORK" -s /bin/bash ada
  usermod -d "$WORK" ada
  echo 'ada:secret' | chpasswd
}

ftp_transfers() {
  local url=ftp://ada:secret@192.0.2.1
  client curl -s "$url/data/small.bin" -o "$1/1"
  client curl -s "$url/data/with%20space.bin" -o "$1/2"
  client curl -s -T "$WORK/data/small.bin" "$url/in/ftp-up.bin"
  client curl -s "$url/data/" > /dev/null
  client curl -s "$url/data/missing.bin" -o "$1/3" || true
  client curl -s -m 1 "$url/data/large.bin" -o "$1/4" || true
  client curl -s -m 1 -T "$WORK/data/large.bin" "$url/in/ftp-cut.bin" || true
  client curl -s -Q "DELE in/ftp-up.bin" "$url/" > /dev/null || true
  sleep 2
}

vsftpd() {
  local dir=$WORK/vsftpd
  mkdir -p "$dir/empty"; chmod 755 "$dir"
  ftp_user
  cat > "$dir/vsftpd.conf" <<END
listen=YES
background=NO
local_enable=YES
write_enable=YES
anonymous_enable=NO
dual_log_enable=YES
xferlog_enable=YES
xferlog_file=$dir/xferlog
vsftpd_log_file=$dir/vsftpd.log
use_localtime=YES
secure_chroot_dir=$dir/empty
pam_service_name=vsftpd
seccomp_sandbox=NO
END
  serve vsftpd "$dir/vsftpd.conf"
  wait_port 21
  ftp_transfers "$dir"
  cp "$dir/vsftpd.log" "$OUT/vsftpd.log"
  cp "$dir/xferlog" "$OUT/xferlog-vsftpd.log"
}

proftpd() {
  local dir=$WORK/proftpd
  mkdir -p "$dir"
  ftp_user
  cat > "$dir/proftpd.conf" <<END
ServerName transfers
ServerType standalone
DefaultServer on
Port 2121
User nobody
Group nogroup
UseIPv6 off
UseReverseDNS off
PidFile $dir/pid
ScoreboardFile $dir/scoreboard
SystemLog $dir/system.log
TransferLog $dir/xferlog
WtmpLog off
<Directory />
  AllowOverwrite on
</Directory>
END
  serve proftpd -n -c "$dir/proftpd.conf"
  wait_port 2121
  local url=ftp://ada:secret@192.0.2.1:2121
  client curl -s "$url/data/small.bin" -o "$dir/1"
  client curl -s "$url/data/with%20space.bin" -o "$dir/2"
  client curl -s -T "$WORK/data/small.bin" "$url/in/pro-up.bin"
  client curl -s "$url/data/missing.bin" -o "$dir/3" || true
  client curl -s -m 1 "$url/data/large.bin" -o "$dir/4" || true
  client curl -s -m 1 -T "$WORK/data/large.bin" "$url/in/pro-cut.bin" || true
  client curl -s -Q "DELE in/pro-up.bin" "$url/" > /dev/null || true
  sleep 2
  cp "$dir/xferlog" "$OUT/xferlog-proftpd.log"
}

nginx() {
  local dir=$WORK/nginx
  mkdir -p "$dir"; chmod 777 "$dir"
  cat > "$dir/nginx.conf" <<END
daemon off;
user nobody nogroup;
pid $dir/pid;
error_log $dir/error.log;
load_module /usr/lib/nginx/modules/ngx_http_dav_ext_module.so;
events {}
http {
  log_format transfers '\$msec \$remote_addr \$remote_port \$server_addr \$server_port "\$remote_user" "\$request" \$status '
                       '\$body_bytes_sent \$request_length \$request_time "\$request_completion"';
  log_format json escape=json '{"time":"\$time_iso8601","seconds":\$request_time,"client":"\$remote_addr","port":\$remote_port,'
                              '"method":"\$request_method","file":"\$uri","bytes":\$body_bytes_sent,"status":"\$status"}';
  access_log $dir/access.log transfers;
  access_log $dir/combined.log combined;
  access_log $dir/json.log json;
  client_body_temp_path $dir/body;
  client_max_body_size 10m;
  server {
    listen 192.0.2.1:8080;
    root $WORK;
    location /in/ { dav_methods PUT; }
  }
}
END
  [ -e /usr/lib/nginx/modules/ngx_http_dav_ext_module.so ] || sed -i /load_module/d "$dir/nginx.conf"
  serve nginx -c "$dir/nginx.conf"
  wait_port 8080
  local url=http://192.0.2.1:8080
  local csv='%{time_total},%{size_download},%{http_code},%{remote_ip},%{remote_port},%{url_effective}\n'
  echo 'finished,seconds,bytes,status,address,port,url' > "$dir/curl.csv"
  for file in small.bin large.bin with%20space.bin missing.bin; do
    local line
    line=$(client curl -s "$url/data/$file?token=1" -o "$dir/1" -w "$csv")
    echo "$(date +%s.%N),$line" >> "$dir/curl.csv"
  done
  client curl -s "$url/data/small.bin" -o "$dir/1" "$url/data/large.bin" -o "$dir/2"
  client curl -s -T "$WORK/data/small.bin" "$url/in/put.bin"
  client curl -s -T "$WORK/data/small.bin" "$url/data/forbidden.bin" || true
  client curl -s -I "$url/data/small.bin" > /dev/null
  client curl -s "$url/data" > /dev/null
  client curl -s -m 1 "$url/data/large.bin" -o "$dir/3" || true
  client curl -s -m 1 -T "$WORK/data/large.bin" "$url/in/cut.bin" || true
  client curl -s -k "https://192.0.2.1:8080/" || true
  sleep 2
  cp "$dir/access.log" "$OUT/nginx.log"
  cp "$dir/combined.log" "$OUT/nginx-combined.log"
  cp "$dir/json.log" "$OUT/mapping-nginx-json.log"
  cp "$dir/curl.csv" "$OUT/mapping-curl-csv.log"
}

rclone() {
  local dir=$WORK/rclone
  mkdir -p "$dir/www"; cp "$WORK"/data/*.bin "$dir/www"
  serve rclone serve webdav "$dir/www" --addr 192.0.2.1:8081
  wait_port 8081
  export RCLONE_CONFIG=$dir/rclone.conf
  client rclone config create remote webdav url=http://192.0.2.1:8081 vendor=other > /dev/null
  local log=(--use-json-log --log-level INFO --log-file "$dir/rclone.log" --stats 500ms)
  client rclone copy remote: "$dir/down" "${log[@]}"
  client rclone copy "$WORK/data" remote:up "${log[@]}"
  client rclone copyto remote:missing.bin "$dir/missing" "${log[@]}" --retries 1 || true
  client rclone copy remote:large.bin "$dir/readonly/" "${log[@]}" --retries 1 --timeout 1s --max-transfer 500k --cutoff-mode hard || true
  sleep 1
  cp "$dir/rclone.log" "$OUT/rclone.log"
}

openssh() {
  local dir=$WORK/openssh
  mkdir -p "$dir" /run/sshd
  ftp_user
  ssh-keygen -q -t ed25519 -N '' -f "$dir/host"
  ssh-keygen -q -t ed25519 -N '' -f "$dir/key"
  mkdir -p "$WORK/.ssh"; cp "$dir/key.pub" "$WORK/.ssh/authorized_keys"
  chown -R ada "$WORK/.ssh"; chmod 700 "$WORK/.ssh"; chmod 755 "$WORK"
  cat > "$dir/rsyslog.conf" <<END
module(load="imuxsock")
template(name="iso" type="string" string="%TIMESTAMP:::date-rfc3339% %HOSTNAME% %syslogtag%%msg:::sp-if-no-1st-sp%%msg:::drop-last-lf%\n")
auth,authpriv.* action(type="omfile" file="$dir/auth.log" template="RSYSLOG_TraditionalFileFormat")
auth,authpriv.* action(type="omfile" file="$dir/auth-iso.log" template="iso")
daemon.* action(type="omfile" file="$dir/daemon.log" template="RSYSLOG_TraditionalFileFormat")
END
  rsyslogd -n -f "$dir/rsyslog.conf" -i "$dir/rsyslog.pid" > /dev/null 2>&1 &
  pids+=($!)
  sleep 1
  cat > "$dir/sshd_config" <<END
Port 2222
ListenAddress 192.0.2.1
HostKey $dir/host
PidFile none
UsePAM no
StrictModes no
Subsystem sftp /usr/lib/openssh/sftp-server -f AUTH -l INFO
END
  serve "$(command -v sshd)" -D -f "$dir/sshd_config"
  wait_port 2222
  local options=(-P 2222 -i "$dir/key" -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null)
  dated() { ts '%Y-%m-%dT%H:%M:%.S%z' >> "$dir/scp.log"; }
  client scp -v "${options[@]}" ada@192.0.2.1:"$WORK/data/small.bin" "$dir/1" 2>&1 | dated
  client scp -v "${options[@]}" "$WORK/data/large.bin" ada@192.0.2.1:"$WORK/in/scp.bin" 2>&1 | dated
  client scp -v "${options[@]}" ada@192.0.2.1:"$WORK/data/missing.bin" "$dir/2" 2>&1 | dated || true
  client scp -o LogLevel=VERBOSE "${options[@]}" ada@192.0.2.1:"$WORK/data/small.bin" "$dir/3" 2>&1 | dated
  client sftp -q "${options[@]}" ada@192.0.2.1 > /dev/null 2>&1 <<END
get "$WORK/data/with space.bin" $dir/4
put $WORK/data/small.bin $WORK/in/sftp.bin
get $WORK/data/missing.bin $dir/5
ls $WORK/data
END
  client timeout 1 scp -q "${options[@]}" ada@192.0.2.1:"$WORK/data/large.bin" "$dir/6" || true
  client timeout 1 scp -q "${options[@]}" "$WORK/data/large.bin" ada@192.0.2.1:"$WORK/in/cut.bin" || true
  # rsync and vsftpd through syslog.
  printf '%s\n' 'syslog facility = daemon' 'transfer logging = yes' 'use chroot = no' '[data]' "  path = $WORK/data" > "$dir/rsyncd.conf"
  serve rsync --daemon --no-detach --config="$dir/rsyncd.conf" --port=874
  wait_port 874
  client rsync -a rsync://192.0.2.1:874/data/small.bin "$dir/7"
  sleep 2
  cp "$dir/auth.log" "$OUT/sftp-server.log"
  cp "$dir/auth-iso.log" "$OUT/sftp-server-iso.log"
  cp "$dir/scp.log" "$OUT/scp.log"
  grep rsyncd "$dir/daemon.log" > "$OUT/rsync-syslog.log"
}

iperf3() {
  local dir=$WORK/iperf3
  mkdir -p "$dir"
  serve iperf3 -s -J --logfile "$dir/server.log" -B 192.0.2.1
  # A connection without a test crashes this server.
  sleep 1
  local run=(client iperf3 -J --logfile "$dir/client.log" -c 192.0.2.1)
  "${run[@]}" -n 500K
  "${run[@]}" -n 500K -R -P 2 -w 128K
  "${run[@]}" -t 2 --bidir
  "${run[@]}" -t 2 -O 1 -C reno
  "${run[@]}" -u -n 100K
  "${run[@]}" -p 5999 || true
  client timeout 2 iperf3 -J --logfile "$dir/client.log" -c 192.0.2.1 -t 10 || true
  client timeout -s KILL 2 iperf3 -J --logfile "$dir/client.log" -c 192.0.2.1 -t 10 || true
  sleep 2
  "${run[@]}" -n 100K
  sleep 1
  cp "$dir/client.log" "$OUT/iperf3-client.log"
  cp "$dir/server.log" "$OUT/iperf3-server.log"
}

setup
for format in "${@:-gridftp xrootd rsync vsftpd nginx rclone openssh iperf3}"; do
  # Functions have the names of the programs: call the programs by their paths inside.
  for one in $format; do "$one"; done
done
