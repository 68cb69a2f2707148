package engine

import (
	"encoding/json"

	"github.com/weir-go/weir/kinesistest/internal/codec"
)

// Policy puts, gets or deletes the resource policy of a stream, consumer or queue. The engine
// stores and returns policies. They have no effect, because there is only one account.
type Policy struct {
	resourceRef
	policy optText
	verb   policyVerb
}

type policyVerb int

const (
	putPolicy policyVerb = iota
	getPolicy
	deletePolicy
)

func newPolicy(verb policyVerb) func() Request {
	return func() Request { return &Policy{resourceRef: resourceRef{byARN: true}, verb: verb} }
}

func (r *Policy) Fields() codec.Fields {
	return r.fields(codec.Field{Name: "Policy", Into: &r.policy})
}

func (r *Policy) do(c *call) error {
	var v validator
	if r.verb == putPolicy {
		v.required(r.policy.Set, "policy")
	}
	r.validate(&v)
	if err := v.err(); err != nil {
		return err
	}
	if r.verb == putPolicy && (len(r.policy.V) > 20<<10 || !json.Valid([]byte(r.policy.V))) {
		return invalid("The policy has to be a JSON document of at most 20 KiB.")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.resolve(&r.resourceRef); err != nil {
		return err
	}
	have, found := c.policies[r.resource.V]
	switch {
	case r.verb == putPolicy:
		c.policies[r.resource.V] = r.policy.V
	case r.verb == deletePolicy && !found:
		return notFound("%s has no resource policy.", r.resource.V)
	case r.verb == deletePolicy:
		delete(c.policies, r.resource.V)
	default:
		if !found {
			have = "{}"
		}
		c.out.Map()
		c.out.Key("Policy").Text(have)
		c.out.End()
	}
	return nil
}
