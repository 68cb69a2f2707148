package dynamostore

import (
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// change is one conditional write of one row, being put together. All attribute names go through
// placeholders, because many of ours are reserved words.
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

// set sets an attribute.
func (c *change) set(attr string, v types.AttributeValue) *change {
	c.sets = append(c.sets, c.name(attr)+" = "+c.value(v))
	return c
}

// setText sets an attribute, or removes it when the text is empty.
func (c *change) setText(attr, s string) *change {
	if s == "" {
		return c.remove(attr)
	}
	return c.set(attr, text(s))
}

// setFlag sets an attribute to true, or removes it.
func (c *change) setFlag(attr string, on bool) *change {
	if !on {
		return c.remove(attr)
	}
	return c.set(attr, yes())
}

// setOnce sets an attribute that is absent.
func (c *change) setOnce(attr string, v types.AttributeValue) *change {
	n := c.name(attr)
	c.sets = append(c.sets, n+" = if_not_exists("+n+", "+c.value(v)+")")
	return c
}

// copy sets an attribute to what another one was before.
func (c *change) copy(attr, from string) *change {
	c.sets = append(c.sets, c.name(attr)+" = "+c.name(from))
	return c
}

// next adds one to a number, absent counting as 0, and sets another attribute to what it was
// before.
func (c *change) next(attr, before string) *change {
	was := "if_not_exists(" + c.name(attr) + ", " + c.value(number(0)) + ")"
	// Expressions see the row as it was. In this order it is right also where an emulator has them
	// see each other.
	c.sets = append(c.sets, c.name(before)+" = "+was, c.name(attr)+" = "+was+" + "+c.value(number(1)))
	return c
}

// count adds one to a number, absent counting as 0.
func (c *change) count(attr string) *change {
	c.add = append(c.add, c.name(attr)+" "+c.value(number(1)))
	return c
}

// include adds a text to a set.
func (c *change) include(attr, s string) *change {
	c.add = append(c.add, c.name(attr)+" "+c.value(&types.AttributeValueMemberSS{Value: []string{s}}))
	return c
}

// exclude takes a text out of a set.
func (c *change) exclude(attr, s string) *change {
	c.deletes = append(c.deletes, c.name(attr)+" "+c.value(&types.AttributeValueMemberSS{Value: []string{s}}))
	return c
}

func (c *change) remove(attr string) *change {
	c.removes = append(c.removes, c.name(attr))
	return c
}

// when adds a comparison to the condition. An attribute that is absent fulfils none.
func (c *change) when(attr, operator string, v types.AttributeValue) *change {
	c.conditions = append(c.conditions, c.name(attr)+" "+operator+" "+c.value(v))
	return c
}

// whenText demands that an attribute has this text, or is absent when the text is empty.
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

// fits demands that a set has s or fewer than most others.
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

// putInput puts it in the place of the row, under the conditions.
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
