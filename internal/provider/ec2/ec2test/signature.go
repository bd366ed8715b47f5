package ec2test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	signatureScheme = "AWS4-HMAC-SHA256"
	signatureTime   = "20060102T150405Z"
	// signatureAge is how far a request's date may be from the server's (EC2's documented 15 minutes).
	signatureAge = 15 * time.Minute
)

// identity is the key, service and region of a request's signature.
type identity struct{ key, service, region string }

// credential is the header Authorization, taken apart.
type credential struct {
	key, date, region, service string
	headers                    []string
	signature                  string
}

// readCredential reads a header of the form
// "AWS4-HMAC-SHA256 Credential=KEY/DATE/REGION/SERVICE/aws4_request, SignedHeaders=a;b, Signature=HEX".
func readCredential(header string) (credential, bool) {
	rest, ok := strings.CutPrefix(header, signatureScheme+" ")
	if !ok {
		return credential{}, false
	}
	fields := map[string]string{}
	for field := range strings.SplitSeq(rest, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		fields[name] = value
	}
	scope := strings.Split(fields["Credential"], "/")
	if len(scope) != 5 || scope[4] != "aws4_request" || fields["SignedHeaders"] == "" {
		return credential{}, false
	}
	return credential{
		key: scope[0], date: scope[1], region: scope[2], service: scope[3],
		headers: strings.Split(fields["SignedHeaders"], ";"), signature: fields["Signature"],
	}, true
}

// verify computes the signature of a request anew (Signature Version 4) and compares. secrets maps access keys to
// secrets; now is the server's time, and expired the code for a date too far from it. The identity is filled as far as
// the request has it, so that a refusal can be written in its protocol.
func verify(r *http.Request, body []byte, secrets map[string]string, now time.Time, expired string) (identity, error) {
	header := r.Header.Get("Authorization")
	c, ok := readCredential(header)
	who := identity{key: c.key, service: c.service, region: c.region}
	switch {
	case header == "":
		return who, refuse(400, "MissingAuthenticationToken", "the request has no header Authorization")
	case !ok:
		return who, refuse(400, "IncompleteSignature", "the header Authorization is not that of Signature Version 4")
	}
	at, err := time.Parse(signatureTime, r.Header.Get("X-Amz-Date"))
	if err != nil || at.Format("20060102") != c.date {
		return who, refuse(400, "IncompleteSignature", "X-Amz-Date %q is no date, or not that of the scope",
			r.Header.Get("X-Amz-Date"))
	}
	if age := now.Sub(at); age > signatureAge || age < -signatureAge {
		return who, refuse(400, expired, "the request is of %s and the time is %s: more than %s apart", at, now.UTC(),
			signatureAge)
	}
	secret, known := secrets[c.key]
	if !known {
		return who, refuse(401, codeUnknownKey, "no access key %q exists", c.key)
	}
	sum := sha256.Sum256([]byte(canonical(r, body, c.headers)))
	scope := strings.Join([]string{c.date, c.region, c.service, "aws4_request"}, "/")
	text := strings.Join([]string{signatureScheme, at.Format(signatureTime), scope, hex.EncodeToString(sum[:])}, "\n")
	key := []byte("AWS4" + secret)
	for _, part := range []string{c.date, c.region, c.service, "aws4_request"} {
		key = keyed(key, part)
	}
	if !hmac.Equal([]byte(hex.EncodeToString(keyed(key, text))), []byte(c.signature)) {
		return who, refuse(403, codeWrongSignature,
			"the signature that was computed is another: is the secret of %q right?", c.key)
	}
	return who, nil
}

func keyed(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// canonical returns the request in the form that is signed.
func canonical(r *http.Request, body []byte, signed []string) string {
	var headers strings.Builder
	for _, name := range signed {
		value := strings.Join(r.Header.Values(name), ",")
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = strconv.FormatInt(r.ContentLength, 10)
		}
		headers.WriteString(name + ":" + strings.Join(strings.Fields(value), " ") + "\n")
	}
	sum := sha256.Sum256(body)
	return strings.Join([]string{
		r.Method, escapePath(r.URL), canonicalQuery(r.URL.Query()), headers.String(), strings.Join(signed, ";"),
		hex.EncodeToString(sum[:]),
	}, "\n")
}

// escapePath escapes the sent path once more, as every service except S3 requires.
func escapePath(u *url.URL) string {
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	parts := strings.Split(path, "/")
	for i, part := range parts {
		parts[i] = escape(part)
	}
	return strings.Join(parts, "/")
}

func escape(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }

func canonicalQuery(query url.Values) string {
	var pairs []string
	for name, values := range query {
		for _, value := range values {
			pairs = append(pairs, escape(name)+"="+escape(value))
		}
	}
	slices.Sort(pairs)
	return strings.Join(pairs, "&")
}
