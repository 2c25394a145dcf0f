#!/bin/sh
# Runs a nightly build, and tells the node exporter's textfile collector how it went.
#
#   segmentbuild-metrics.sh FILE COMMAND…
#   segmentbuild-metrics.sh /var/lib/node_exporter/segmentbuild.prom segmentbuild build --sets-anyway --to s3://segments/prod segments.yaml
#
# FILE is replaced whole. The exit status is that of the command.
set -u
[ $# -ge 2 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2; }
file=$1
shift
began=$(date +%s)
"$@"
status=$?
ended=$(date +%s)
# The time of the last one that went well outlives those that do not.
success=$(sed -n 's/^segmentbuild_success_timestamp_seconds //p' "$file" 2>/dev/null)
[ "$status" != 0 ] || success=$ended
{
  echo "# HELP segmentbuild_exit_status Exit status of the latest build."
  echo "# TYPE segmentbuild_exit_status gauge"
  echo "segmentbuild_exit_status $status"
  echo "# HELP segmentbuild_run_timestamp_seconds When the latest build ended."
  echo "# TYPE segmentbuild_run_timestamp_seconds gauge"
  echo "segmentbuild_run_timestamp_seconds $ended"
  echo "# HELP segmentbuild_success_timestamp_seconds When a build last ended well; 0: not yet."
  echo "# TYPE segmentbuild_success_timestamp_seconds gauge"
  echo "segmentbuild_success_timestamp_seconds ${success:-0}"
  echo "# HELP segmentbuild_duration_seconds How long the latest build took."
  echo "# TYPE segmentbuild_duration_seconds gauge"
  echo "segmentbuild_duration_seconds $((ended - began))"
} >"$file.$$" && mv "$file.$$" "$file"
exit "$status"
