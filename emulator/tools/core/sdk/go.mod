module github.com/pulumi/pulumi-kubernetes/sdk/v4

go 1.24.7

require github.com/pulumi/pulumi/sdk/v3 v3.230.0
