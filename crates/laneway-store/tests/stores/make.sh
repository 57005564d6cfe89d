#!/bin/sh
# Keeps a store of a program, as text: runs that have ended, one that goes on, and some of what else a store holds, on SQLite and on Postgres.
# `tests/conformance/stores.rs` opens every store that is kept here, and goes on with it. Where there is none of its schema yet:
#
#   cargo build && cargo xtask postgres sh crates/laneway-store/tests/stores/make.sh target/debug/laneway
#
# Needs sqlite3, psql and pg_dump. Nothing of this machine is in it: names and the directory are the script's own. They are never changed
# afterwards, whatever becomes of the schema.
set -eu

laneway=$(realpath "$1")
home=$(cd "$(dirname "$0")" && pwd)
work=/tmp/laneway-stores
export USER=ada LANEWAY_NODE_ADDRESS=one:1
trap 'rm -rf "$work"' EXIT

make() {
    rm -rf "$work" && mkdir "$work" && cd "$work"
    cat >done.yaml <<'FLOW'
name: done
max_parallel: 4
steps:
  list: {run: 'echo files=a >> $LANEWAY_OUTPUT'}
  flaky: {needs: [list], retry: {max: 1, backoff: 0s}, run: 'test $LANEWAY_ATTEMPT = 2'}
  each: {needs: [list], for_each: ['x', 'y'], run: 'true'}
  skipped: {needs: [each], if: '${{ false }}', run: 'true'}
FLOW
    cat >broken.yaml <<'FLOW'
name: broken
steps: {a: {run: 'exit 3'}, b: {needs: [a], run: 'true'}}
FLOW
    cat >going.yaml <<'FLOW'
name: going
limits: {api: 2}
steps:
  first: {run: 'echo n=7 >> $LANEWAY_OUTPUT'}
  approved: {needs: [first], wait: {signal: go}}
  last: {needs: [approved], limits: [api], lock: db, run: 'true'}
FLOW
    cat >yearly.yaml <<'FLOW'
name: yearly
schedule: {cron: '0 0 1 1 *'}
steps: {a: {run: 'true'}}
FLOW
    "$laneway" run done.yaml
    "$laneway" run broken.yaml || test $? = 1
    "$laneway" apply yearly.yaml
    "$laneway" token create ci --role viewer >token
    "$laneway" submit going.yaml
    "$laneway" worker --exit-with-parent --shutdown-grace 5s &
    worker=$!
    until "$laneway" show last --json | grep -q '"status": *"parked"'; do sleep 0.1; done
    kill "$worker" && wait "$worker"
}

# Whoever drives a run of its own is named after its host.
anonymous() { sed "s/$(hostname):[0-9]*/two:1/g"; }

make
schema=$(sqlite3 .laneway/laneway.db 'PRAGMA user_version')
{
    sqlite3 .laneway/laneway.db .dump
    # These are of the file, and no dump has them.
    echo "PRAGMA application_id = $(sqlite3 .laneway/laneway.db 'PRAGMA application_id');"
    echo "PRAGMA user_version = $schema;"
} | anonymous >"$home/schema-$schema.sqlite.sql"

psql -q "$LANEWAY_TEST_POSTGRES" -c 'CREATE SCHEMA laneway_stored'
export LANEWAY_STORE="$LANEWAY_TEST_POSTGRES?options=-csearch_path%3Dlaneway_stored"
make
# What a server, a pg_dump or a psql of another version would stumble over is left out: the test has a schema of its own.
pg_dump --no-owner --no-privileges --inserts --schema=laneway_stored "$LANEWAY_TEST_POSTGRES" |
    grep -v -e '^SET ' -e '^SELECT pg_catalog.set_config' -e '^CREATE SCHEMA' -e '^\\' -e '^--' -e '^$' |
    anonymous >"$home/schema-$schema.postgres.sql"
ls -l "$home"
