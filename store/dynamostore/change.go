package dynamostore

import (
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// change builds one conditional write of one row. It uses placeholders for all attribute names,
// because many of them are reserved words.
type change struct {
	app, row      string
	sets, removes []string
	add, deletes  []string
	conditions    []string
	names         map[string]string
	values        item
}

func newChange(app, row string) *change {
	return &change{app: app, row: row, names: map[string]string{}, values: item{}}
}

func (c *change) name(attr string) string {
	c.names["#"+attr] = attr
	return "#" + attr
}

func (c *change) value(v types.AttributeValue) string {
	p := ":" + strconv.Itoa(len(c.values))
	c.values[p] = v
	return p
}

func (c *change) set(attr string, v types.AttributeValue) *change {
	c.sets = append(c.sets, c.name(attr)+" = "+c.value(v))
	return c
}

// setText sets an attribute, or removes it if s is empty.
func (c *change) setText(attr, s string) *change {
	if s == "" {
		return c.remove(attr)
	}
	return c.set(attr, text(s))
}

// setNote sets an attribute whose name may contain any character, or removes it if s is empty.
func (c *change) setNote(attr, s string) {
	c.names["#note"] = attr
	if s == "" {
		c.removes = append(c.removes, "#note")
		return
	}
	c.sets = append(c.sets, "#note = "+c.value(text(s)))
}

// setFlag sets an attribute to true, or removes it if on is false.
func (c *change) setFlag(attr string, on bool) *change {
	if !on {
		return c.remove(attr)
	}
	return c.set(attr, yes())
}

// setOnce sets an attribute unless it exists.
func (c *change) setOnce(attr string, v types.AttributeValue) *change {
	n := c.name(attr)
	c.sets = append(c.sets, n+" = if_not_exists("+n+", "+c.value(v)+")")
	return c
}

// copy sets an attribute to the previous value of the attribute from.
func (c *change) copy(attr, from string) *change {
	c.sets = append(c.sets, c.name(attr)+" = "+c.name(from))
	return c
}

// next increments a number, which is 0 if absent. It sets the attribute before to the number's
// previous value.
func (c *change) next(attr, before string) *change {
	was := "if_not_exists(" + c.name(attr) + ", " + c.value(number(0)) + ")"
	// DynamoDB evaluates both expressions on the old row. Their order matters only for an emulator
	// that applies one expression after the other.
	c.sets = append(c.sets, c.name(before)+" = "+was, c.name(attr)+" = "+was+" + "+c.value(number(1)))
	return c
}

// count increments a number, which is 0 if absent.
func (c *change) count(attr string) *change {
	c.add = append(c.add, c.name(attr)+" "+c.value(number(1)))
	return c
}

// include adds a text to a set.
func (c *change) include(attr, s string) *change {
	c.add = append(c.add, c.name(attr)+" "+c.value(&types.AttributeValueMemberSS{Value: []string{s}}))
	return c
}

// exclude removes a text from a set.
func (c *change) exclude(attr, s string) *change {
	c.deletes = append(c.deletes, c.name(attr)+" "+c.value(&types.AttributeValueMemberSS{Value: []string{s}}))
	return c
}

func (c *change) remove(attr string) *change {
	c.removes = append(c.removes, c.name(attr))
	return c
}

// when adds a comparison to the condition.
func (c *change) when(attr, operator string, v types.AttributeValue) *change {
	c.conditions = append(c.conditions, c.name(attr)+" "+operator+" "+c.value(v))
	return c
}

// whenText requires that an attribute is equal to s, or is absent if s is empty.
func (c *change) whenText(attr, s string) *change {
	if s == "" {
		return c.absent(attr)
	}
	return c.when(attr, "=", text(s))
}

func (c *change) exists(attr string) *change {
	c.conditions = append(c.conditions, "attribute_exists("+c.name(attr)+")")
	return c
}

func (c *change) absent(attr string) *change {
	c.conditions = append(c.conditions, "attribute_not_exists("+c.name(attr)+")")
	return c
}

// fits requires that a set contains s or has fewer than most elements.
func (c *change) fits(attr, s string, most int) *change {
	n := c.name(attr)
	c.conditions = append(c.conditions, "(attribute_not_exists("+n+") OR size("+n+") < "+c.value(number(uint64(most)))+
		" OR contains("+n+", "+c.value(text(s))+"))")
	return c
}

func (c *change) key() item { return item{attrApp: text(c.app), attrRow: text(c.row)} }

func (c *change) condition() *string {
	if len(c.conditions) == 0 {
		return nil
	}
	return aws.String(strings.Join(c.conditions, " AND "))
}

func (c *change) updateInput(table string, answer types.ReturnValue) *dynamodb.UpdateItemInput {
	var expression []string
	for _, part := range [...]struct {
		verb  string
		parts []string
	}{{"SET ", c.sets}, {"REMOVE ", c.removes}, {"ADD ", c.add}, {"DELETE ", c.deletes}} {
		if len(part.parts) > 0 {
			expression = append(expression, part.verb+strings.Join(part.parts, ", "))
		}
	}
	in := &dynamodb.UpdateItemInput{
		TableName: &table, Key: c.key(), ConditionExpression: c.condition(), ReturnValues: answer,
		UpdateExpression: aws.String(strings.Join(expression, " ")), ExpressionAttributeNames: c.names,
	}
	if len(c.values) > 0 {
		in.ExpressionAttributeValues = c.values
	}
	return in
}

// putInput returns a request that replaces the row by it, under the conditions.
func (c *change) putInput(table string, it item) *dynamodb.PutItemInput {
	return &dynamodb.PutItemInput{
		TableName: &table, Item: it, ConditionExpression: c.condition(), ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
	}
}

func (c *change) deleteInput(table string) *dynamodb.DeleteItemInput {
	in := &dynamodb.DeleteItemInput{TableName: &table, Key: c.key(), ConditionExpression: c.condition()}
	if len(c.names) > 0 {
		in.ExpressionAttributeNames = c.names
	}
	if len(c.values) > 0 {
		in.ExpressionAttributeValues = c.values
	}
	return in
}
