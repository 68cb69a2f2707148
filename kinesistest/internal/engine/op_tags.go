package engine

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/weir-go/weir/kinesistest/internal/codec"
)

// ChangeTags sets or removes tags of a stream, consumer or queue. AddTagsToStream and
// RemoveTagsFromStream use the stream's name. TagResource and UntagResource use an ARN.
type ChangeTags struct {
	resourceRef
	add    map[string]string
	keys   []string
	remove bool
}

// resourceRef is the part of a request that names a resource. If byARN is false, it names a stream
// as a streamRef does. Otherwise it names a stream, consumer or queue by its ARN.
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
	if r.namesQueue() {
		return (&queueRef{r.resource}).target(e)
	}
	if r.byARN {
		return Target{Stream: nameOfARN(r.resource.V), Consumer: nameOfConsumer(r.resource.V)}
	}
	return r.streamRef.target(e)
}

func (r *resourceRef) validate(v *validator) {
	if !r.byARN {
		r.streamRef.validate(v)
	} else if v.required(r.resource.Set, "resourceARN") {
		v.text(r.resource, "resourceARN", resourceARN, 2048)
	}
}

func (r *resourceRef) namesQueue() bool {
	return r.byARN && strings.Contains(r.resource.V, queueInfix)
}

// owner is a resource that has tags.
type owner struct {
	kind, name string // for texts
	status     status // of the queue, or of the stream
	tags       map[string]string
}

// resolve returns the resource that a reference names.
func (c *call) resolve(r *resourceRef) (owner, error) {
	if r.namesQueue() {
		q, err := c.queueOf(r.resource.V)
		if err != nil {
			return owner{}, err
		}
		return owner{"Queue", q.name, q.status, q.tags}, nil
	}
	ref := &r.streamRef
	if r.byARN {
		ref = &streamRef{arn: r.resource}
	}
	if r.byARN && strings.Contains(r.resource.V, "/consumer/") {
		s, of, err := c.consumerOf(&consumerRef{consumer: r.resource})
		if err != nil {
			return owner{}, err
		}
		return owner{"Stream", s.name, s.status, of.tags}, nil
	}
	s, err := c.lookup(ref)
	if err != nil {
		return owner{}, err
	}
	return owner{"Stream", s.name, s.status, s.tags}, nil
}

func (r *ChangeTags) Fields() codec.Fields {
	if r.remove {
		return r.fields(codec.Field{Name: "TagKeys", Into: &r.keys})
	}
	return r.fields(codec.Field{Name: "Tags", Into: &r.add})
}

func (r *ChangeTags) do(c *call) error {
	var v validator
	if r.remove {
		if v.required(r.keys != nil, "tagKeys") {
			v.tagKeys(r.keys)
		}
	} else if v.required(r.add != nil, "tags") {
		v.tags(r.add, 1)
	}
	r.validate(&v)
	if err := v.err(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s, err := c.resolve(&r.resourceRef)
	if err != nil {
		return err
	}
	if s.status == creating || s.status == deleting {
		return inUse("%s %s under account %s not ACTIVE, instead in state %s", s.kind, s.name, c.cfg.Account, s.status)
	}
	if err := c.checkTags(s.name, r.add, r.keys); err != nil {
		return err
	}
	tags := s.tags
	if r.remove {
		for _, k := range r.keys {
			delete(tags, k) // a missing tag is not an error
		}
		return nil
	}
	merged := maps.Clone(tags)
	maps.Copy(merged, r.add)
	if len(merged) > maxTags {
		return invalid("Failed to add tags to stream %s under account %s because a given stream cannot have more than %d tags associated with it.", s.name, c.cfg.Account, maxTags)
	}
	maps.Copy(tags, r.add)
	return nil
}

// tagCharacters matches the characters that tags may contain. A percent sign passes this check of
// the service, and fails the next check. All AWS services reserve the prefix reservedTags. The text
// with which Kinesis refuses the prefix is not recorded.
var tagCharacters = regexp.MustCompile(`^[\x{00C0}-\x{1FFF}\x{2C00}-\x{D7FF}\w./\-=+ @%:]*$`)

const reservedTags = "aws:"

// checkTags checks the characters of tags to add, or of tag keys to remove. The error mentions the
// stream.
func (c *call) checkTags(stream string, add map[string]string, remove []string) error {
	all, how := slices.Clone(remove), "remove tags from"
	if add != nil {
		how = "add tags to"
	}
	for k, v := range add {
		all = append(all, k, v)
	}
	percent := false
	for _, s := range all {
		if !tagCharacters.MatchString(s) {
			return invalid("Some tags contain invalid characters. Valid characters: Unicode letters, digits, white space, _ . / = + - %% @ :.")
		}
		percent = percent || strings.Contains(s, "%")
	}
	if percent {
		return invalid("Failed to %s stream %s under account %s because some tags contained illegal characters. The allowed characters are Unicode letters, white-spaces, '_',',','/','=','+','-','@',':'.",
			how, stream, c.cfg.Account)
	}
	for k := range add {
		if strings.HasPrefix(strings.ToLower(k), reservedTags) {
			return invalid("Failed to add tags to stream %s under account %s because the prefix %s is reserved.", stream, c.cfg.Account, reservedTags)
		}
	}
	return nil
}

// ListTags carries out ListTagsForStream, which returns pages, and ListTagsForResource, which
// returns all tags at once.
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
	if r.start.Set {
		v.length(r.start.V, "exclusiveStartTagKey", 1, 128)
	}
	v.intRange(r.limit, "limit", 1, maxTags)
	r.validate(&v)
	if err := v.err(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s, err := c.resolve(&r.resourceRef)
	if err != nil {
		return err
	}
	tags := s.tags
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
