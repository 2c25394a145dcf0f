package main

const buildHelp = `Simple cases:

  segmentbuild build --to s3://segments/prod --segment new=new.csv --segment active='active/*.parquet'
  segmentbuild build --to var/segments --table users.csv.gz --precedence vip,active,new

With a build file, segments.yaml:

  segments:                       # in order of precedence
    - name: vip
      inputs: [vip.csv]
      max_change: 5%              # also max_week_change, min_users, max_users
    - name: active
      inputs:
        - path: s3://warehouse/active/*.parquet
          id_column: customer_id
          newer_than: 36h         # also min_files, min_rows
    - name: dormant               # everyone minus active
      union: [everyone]
      minus: [active, vip]
  sets:                           # ingredients that are not published
    - name: everyone
      inputs: ["everyone-*.txt.zst"]
  overlaps: precedence            # or error, the default
  max_bad_rows: 0
  allow_new: [dormant]            # may appear beside what is live

  segmentbuild build --to s3://segments/prod segments.yaml --dry-run
`
