package benchserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// position is the starting position of an iterator or a subscription.
type position struct {
	Type, ShardIteratorType                string
	SequenceNumber, StartingSequenceNumber string
}

// index returns the index of the first record at a position.
func (s *Server) index(p position) (int, error) {
	number := p.SequenceNumber + p.StartingSequenceNumber
	switch p.Type + p.ShardIteratorType {
	case "TRIM_HORIZON", "AT_TIMESTAMP":
		return 0, nil
	case "LATEST":
		return s.cfg.Records, nil
	case "AT_SEQUENCE_NUMBER":
		i, err := indexOf(number)
		return min(i, s.cfg.Records), err
	case "AFTER_SEQUENCE_NUMBER":
		i, err := indexOf(number)
		return min(i+1, s.cfg.Records), err
	}
	return 0, fmt.Errorf("no position of type %.40q", p.Type+p.ShardIteratorType)
}

func shardID(i int) string { return fmt.Sprintf("shardId-%012d", i) }

func (s *Server) shard(id string) (int, error) {
	digits, ok := strings.CutPrefix(id, "shardId-")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 0 || n >= s.cfg.Shards {
		return 0, fmt.Errorf("no shard %.100q", id)
	}
	return n, nil
}

type object = map[string]any

// control answers all operations except reads and puts. It supports only JSON.
func (s *Server) control(w http.ResponseWriter, action string, f format, body []byte) error {
	var in struct {
		ShardId, NextToken, ConsumerName string
		MaxResults                       int
		position
	}
	if f != jsonFormat {
		return fmt.Errorf("%.40s is answered in JSON alone", action)
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return err
	}
	consumer := object{
		"ConsumerName": in.ConsumerName, "ConsumerARN": ConsumerARN, "ConsumerStatus": "ACTIVE", "ConsumerCreationTimestamp": time.Now().Unix(),
	}
	var out object
	switch action {
	case "GetShardIterator":
		shard, err := s.shard(in.ShardId)
		if err != nil {
			return err
		}
		index, err := s.index(in.position)
		if err != nil {
			return err
		}
		out = object{"ShardIterator": Iterator(shard, index)}
	case "ListShards":
		var err error
		if out, err = s.list(in.NextToken, in.MaxResults); err != nil {
			return err
		}
	case "DescribeStreamSummary":
		out = object{"StreamDescriptionSummary": object{
			"StreamName": Stream, "StreamARN": streamARN, "StreamStatus": "ACTIVE", "StreamCreationTimestamp": time.Now().Unix(),
			"RetentionPeriodHours": 24, "EnhancedMonitoring": []object{{"ShardLevelMetrics": []string{}}}, "EncryptionType": "NONE",
			"OpenShardCount": s.cfg.Shards, "ConsumerCount": 1,
		}}
	case "DescribeStreamConsumer":
		consumer["StreamARN"] = streamARN
		out = object{"ConsumerDescription": consumer}
	case "RegisterStreamConsumer":
		out = object{"Consumer": consumer}
	case "ListStreamConsumers":
		out = object{"Consumers": []object{consumer}}
	default:
		return fmt.Errorf("%.40q is not served", action)
	}
	b, err := json.Marshal(out)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", jsonFormat.contentType())
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	s.write(w, b)
	return nil
}

// list returns a page of the shards. The shards divide the hash keys evenly.
func (s *Server) list(token string, most int) (object, error) {
	from, err := 0, error(nil)
	if token != "" {
		if from, err = strconv.Atoi(token); err != nil || from < 0 || from > s.cfg.Shards {
			return nil, errors.New("no such NextToken")
		}
	}
	if most <= 0 {
		most = 1000
	}
	keys := new(big.Int).Lsh(big.NewInt(1), 128)
	bound := func(i int) *big.Int {
		b := new(big.Int).Mul(keys, big.NewInt(int64(i)))
		return b.Div(b, big.NewInt(int64(s.cfg.Shards)))
	}
	to := min(from+most, s.cfg.Shards)
	shards := []object{}
	for i := from; i < to; i++ {
		shards = append(shards, object{
			"ShardId":             shardID(i),
			"HashKeyRange":        object{"StartingHashKey": bound(i).String(), "EndingHashKey": bound(i+1).Sub(bound(i+1), big.NewInt(1)).String()},
			"SequenceNumberRange": object{"StartingSequenceNumber": sequence(0)},
		})
	}
	out := object{"Shards": shards}
	if to < s.cfg.Shards {
		out["NextToken"] = strconv.Itoa(to)
	}
	return out, nil
}
