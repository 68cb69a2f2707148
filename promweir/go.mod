module github.com/weir-go/weir/promweir

go 1.26.0

require (
	github.com/aws/aws-sdk-go-v2 v1.47.8
	github.com/aws/aws-sdk-go-v2/service/kinesis v1.56.10
	github.com/prometheus/client_golang v1.25.0
	github.com/weir-go/weir v0.1.0
)
