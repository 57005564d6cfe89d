#!/bin/sh
# Makes the image of examples/agents.yaml: a static busybox, its tools by name, and an answer to /health and to /cgi-bin/ask.
# Takes Debian's busybox-static, and Docker: `sh examples/agents.sh`.
set -eu
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root/bin" "$root/tmp" "$root/www/cgi-bin"
chmod 1777 "$root/tmp"
cp "$(command -v busybox)" "$root/bin/busybox"
for tool in $(busybox --list); do
  [ "$tool" = busybox ] || ln -s busybox "$root/bin/$tool"
done
echo ok > "$root/www/health"
cat > "$root/www/cgi-bin/ask" <<'ASK'
#!/bin/sh
printf 'Content-Type: application/json\r\n\r\n{"method": "%s", "heard": ' "$REQUEST_METHOD"
if [ "${CONTENT_LENGTH:-0}" != 0 ]; then head -c "$CONTENT_LENGTH"; else printf null; fi
printf '}'
ASK
chmod 755 "$root/www/cgi-bin/ask"
tar -C "$root" -c . | docker import --change 'CMD ["/bin/httpd", "-f", "-p", "80", "-h", "/www"]' - laneway-example/agent:1
