package engine

import (
	"maps"
	"slices"
	"strings"

	"github.com/weir-go/weir/kinesistest/internal/codec"
)

// ChangeTags sets or removes tags of a stream or consumer. AddTagsToStream and
// RemoveTagsFromStream name a stream; TagResource and UntagResource name either
// by ARN.
type ChangeTags struct {
	resourceRef
	add    map[string]string
	keys   []string
	remove bool
}

// resourceRef names a stream in the ways of streamRef, or with byARN a stream
// or consumer by its ARN only.
type resourceRef struct {
	streamRef
	resource optText
	byARN    bool
}

func (r *resourceRef) fields(more ...codec.Field) codec.Fields {
	if r.byARN {
		return append(codec.Fields{{Name: "ResourceARN", Into: &r.resource}}, more...)
	}
	return r.streamRef.fields(more...)
}

func (r *resourceRef) target(e *Engine) Target {
	if r.byARN {
		return Target{Stream: nameOfARN(r.resource.V), Consumer: nameOfConsumer(r.resource.V)}
	}
	return r.streamRef.target(e)
}

func (r *resourceRef) validate(v *validator) {
	switch {
	case !r.byARN:
		r.streamRef.validate(v)
	case !v.required(r.resource.Set, "resourceARN"):
	case strings.Contains(r.resource.V, "/consumer/"):
		v.consumerARN(r.resource, "resourceARN")
	default:
		v.streamARN(r.resource, "resourceARN")
	}
}

// resolve finds the stream, and the consumer if the reference names one.
func (c *call) resolve(r *resourceRef) (*stream, *consumer, error) {
	switch {
	case !r.byARN:
		s, err := c.lookup(&r.streamRef)
		return s, nil, err
	case strings.Contains(r.resource.V, "/consumer/"):
		return c.consumerOf(&consumerRef{consumer: r.resource})
	}
	s, err := c.lookup(&streamRef{arn: r.resource})
	return s, nil, err
}

func (r *ChangeTags) Fields() codec.Fields {
	if r.remove {
		return r.fields(codec.Field{Name: "TagKeys", Into: &r.keys})
	}
	return r.fields(codec.Field{Name: "Tags", Into: &r.add})
}

func (r *ChangeTags) do(c *call) error {
	var v validator
	r.validate(&v)
	if r.remove {
		if v.required(r.keys != nil, "tagKeys") && (len(r.keys) < 1 || len(r.keys) > maxTags) {
			v.fault(len(r.keys), "tagKeys", "Member must have length between 1 and 50")
		}
		for _, k := range r.keys {
			v.length(k, "tagKeys.member", 1, 128)
		}
	} else if v.required(r.add != nil, "tags") {
		if len(r.add) < 1 {
			v.fault("{}", "tags", "Member must have length greater than or equal to 1")
		}
		v.tags(r.add, maxTags)
	}
	if err := v.err(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s, of, err := c.resolve(&r.resourceRef)
	if err != nil {
		return err
	}
	if s.status == creating || s.status == deleting {
		return inUse("Stream %s under account %s not ACTIVE, instead in state %s", s.name, c.cfg.Account, s.status)
	}
	tags := s.tags
	if of != nil {
		tags = of.tags
	}
	if r.remove {
		for _, k := range r.keys {
			delete(tags, k) // one that is not there is no error
		}
		return nil
	}
	merged := maps.Clone(tags)
	maps.Copy(merged, r.add)
	if len(merged) > maxTags {
		return invalid("Failed to add tags. A given resource cannot have more than %d tags associated with it.", maxTags)
	}
	maps.Copy(tags, r.add)
	return nil
}

// ListTags is ListTagsForStream, which pages, or ListTagsForResource, which
// does not.
type ListTags struct {
	resourceRef
	start optText
	limit optInt
}

func (r *ListTags) Fields() codec.Fields {
	if r.byARN {
		return r.fields()
	}
	return r.fields(codec.Field{Name: "ExclusiveStartTagKey", Into: &r.start}, codec.Field{Name: "Limit", Into: &r.limit})
}

func (r *ListTags) do(c *call) error {
	var v validator
	r.validate(&v)
	if r.start.Set {
		v.length(r.start.V, "exclusiveStartTagKey", 1, 128)
	}
	v.intRange(r.limit, "limit", 1, maxTags)
	if err := v.err(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s, of, err := c.resolve(&r.resourceRef)
	if err != nil {
		return err
	}
	tags := s.tags
	if of != nil {
		tags = of.tags
	}
	keys := slices.Sorted(maps.Keys(tags))
	if r.start.Set {
		keys = slices.DeleteFunc(keys, func(k string) bool { return k <= r.start.V })
	}
	limit := pageSize(r.limit, maxTags)
	c.out.Map()
	c.out.Key("Tags").Array(min(limit, len(keys)))
	for _, k := range keys[:min(limit, len(keys))] {
		c.out.Elem().Map()
		c.out.Key("Key").Text(k)
		c.out.Key("Value").Text(tags[k])
		c.out.End()
	}
	c.out.End()
	if !r.byARN {
		c.out.Key("HasMoreTags").Bool(len(keys) > limit)
	}
	c.out.End()
	return nil
}
