module github.com/weir-go/weir/payload/zstdpayload

go 1.26.0

require (
	github.com/klauspost/compress v1.20.4
	github.com/weir-go/weir v0.1.0
)

require (
	github.com/aws/aws-sdk-go-v2 v1.47.6 // indirect
	github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream v1.7.26 // indirect
	github.com/aws/aws-sdk-go-v2/internal/configsources v1.5.9 // indirect
	github.com/aws/aws-sdk-go-v2/internal/endpoints/v2 v2.8.9 // indirect
	github.com/aws/aws-sdk-go-v2/service/kinesis v1.56.10 // indirect
	github.com/aws/smithy-go v1.28.8 // indirect
)
