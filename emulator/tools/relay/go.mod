module mlbatch/tools/relay

go 1.25.0
