package codec

import (
	"errors"
	"testing"
	"time"
)

// The texts are those of the service.
func TestTypeErrors(t *testing.T) {
	const number = "class com.amazon.coral.value.json.numbers.TruncatingBigNumber can not be converted to "
	const aList, aMap = "Start of list found where not expected", "Start of structure or map found where not expected."
	for _, tc := range []struct {
		member, value, want string // an empty want means that the value is accepted
	}{
		{"B", `"23"`, "'23' can not be converted to an Boolean"},
		{"B", `"no way"`, "'NO WAY' can not be converted to an Boolean"},
		{"B", `23`, number + "an Boolean"},
		{"B", `-2147483648`, number + "an Boolean"},
		{"B", `34.56`, ""},
		{"B", `"yes"`, ""},
		{"B", `[]`, aList},
		{"B", `{}`, aMap},
		{"S", `true`, "class java.lang.Boolean can not be converted to an String"},
		{"S", `23`, number + "an String"},
		{"S", `34.56`, number + "an String"},
		{"S", `[]`, aList},
		{"S", `{}`, aMap},
		{"I", `"23"`, "class java.lang.String can not be converted to an Integer"},
		{"I", `true`, "class java.lang.Boolean can not be converted to an Integer"},
		{"I", `2.9`, ""},
		{"I", `[]`, aList},
		{"I", `{}`, aMap},
		{"D", `true`, "class java.lang.Boolean can not be converted to a Blob"},
		{"D", `23`, number + "a Blob"},
		{"D", `[]`, aList},
		{"D", `{}`, aMap},
		{"D", `"23456"`, "'23456' can not be converted to a Blob: Base64 encoded length is expected a multiple of 4 bytes but found: 5"},
		{"D", `"=+/="`, "'=+/=' can not be converted to a Blob: Invalid Base64 character: '='"},
		{"D", `"AP8!"`, "'AP8!' can not be converted to a Blob: Invalid Base64 character: '!'"},
		{"D", `"+/+="`, "'+/+=' can not be converted to a Blob: Invalid last non-pad Base64 character dectected"},
		{"D", `""`, ""},
		{"T", `"2016"`, "class java.lang.String can not be converted to milliseconds since epoch"},
		{"T", `true`, "class java.lang.Boolean can not be converted to milliseconds since epoch"},
		{"T", `[]`, aList},
		{"L", `"23"`, "Expected list or null"},
		{"L", `true`, "Expected list or null"},
		{"L", `23`, "Expected list or null"},
		{"L", `{}`, aMap},
		{"L", `[23]`, number + "an String"},
		{"M", `"23"`, "Expected map or null"},
		{"M", `34.56`, "Expected map or null"},
		{"M", `[]`, aList},
		{"M", `{"a":true}`, "class java.lang.Boolean can not be converted to an String"},
		{"N", `"23"`, "Expected null"},
		{"N", `23`, "Expected null"},
		{"N", `[]`, aList},
	} {
		var v struct {
			S Opt[string]
			I Opt[int64]
			B Opt[bool]
			D Opt[[]byte]
			T Opt[time.Time]
			L []string
			M map[string]string
		}
		fields := Fields{
			{"S", &v.S}, {"I", &v.I}, {"B", &v.B}, {"D", &v.D}, {"T", &v.T}, {"L", &v.L}, {"M", &v.M}, {"N", Fields{}},
		}
		err := fields.Decode(NewDecoder(JSON, []byte(`{"`+tc.member+`":`+tc.value+`}`)))
		if tc.want == "" {
			if err != nil {
				t.Errorf("%s %s: %v", tc.member, tc.value, err)
			}
			continue
		}
		var te *TypeError
		if !errors.As(err, &te) || te.Text != tc.want {
			t.Errorf("%s %s: %v, want %s", tc.member, tc.value, err, tc.want)
		}
	}
}
