module github.com/weir-go/weir/payload/zstdpayload

go 1.26.0

require (
	github.com/klauspost/compress v1.20.4
	github.com/weir-go/weir v0.1.0
)
