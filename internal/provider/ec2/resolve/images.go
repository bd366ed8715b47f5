package resolve

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
)

const describeImages = "ec2:DescribeImages"

// mostValues is how many values EC2 accepts for one filter.
const mostValues = 200

// image is EC2's description of an image.
type image struct {
	id, name, state string
	machine         string    // x86_64, arm64, or others, which no node has
	created         time.Time // zero when EC2 does not say
	deprecates      time.Time // zero for never
	snapshots       map[string]int64
}

func imageOf(i ec2types.Image) image {
	return image{
		id: value(i.ImageId), name: value(i.Name), state: string(i.State), machine: string(i.Architecture),
		created: timeOf(i.CreationDate), deprecates: timeOf(i.DeprecationTime), snapshots: snapshotsOf(i),
	}
}

// snapshotsOf returns the sizes of an image's snapshots, in GiB by device name. A volume cannot be smaller (E-74).
func snapshotsOf(i ec2types.Image) map[string]int64 {
	sizes := map[string]int64{}
	for _, mapping := range i.BlockDeviceMappings {
		if ebs := mapping.Ebs; ebs != nil && value(ebs.SnapshotId) != "" && value(ebs.VolumeSize) > 0 {
			sizes[value(mapping.DeviceName)] = int64(*ebs.VolumeSize)
		}
	}
	return sizes
}

// timeOf reads a time of EC2; zero if it cannot be read.
func timeOf(text *string) time.Time {
	at, err := time.Parse(time.RFC3339, value(text))
	if err != nil {
		return time.Time{}
	}
	return at
}

// architecture returns Kubernetes' name of the architecture; "" if no node has it.
func (i image) architecture() string {
	switch i.machine {
	case string(ec2types.ArchitectureValuesX8664):
		return amd64
	case string(ec2types.ArchitectureValuesArm64):
		return arm64
	}
	return ""
}

func (i image) usable() bool {
	return i.state == string(ec2types.ImageStateAvailable) && i.architecture() != ""
}

func (i image) deprecated(now time.Time) bool {
	return !i.deprecates.IsZero() && !i.deprecates.After(now)
}

// query is a question for images that is not only by id.
type query struct {
	owners  []string
	filters []ec2types.Filter
}

func idKey(id string) string { return "id " + id }

// queryOf returns the query of a term, without its alias. id is the value of its parameter. Without an owner, a name
// is searched only among the images of the account and of Amazon, since anybody may use that name. Tags are the
// account's own, whoever owns the image.
func queryOf(term awsv1.AMISelectorTerm, id string) (query, string) {
	var q query
	add := func(name, value string) {
		q.filters = append(q.filters, ec2types.Filter{Name: &name, Values: []string{value}})
	}
	if id != "" {
		add("image-id", id)
	}
	if term.Name != "" {
		add("name", term.Name)
	}
	for _, key := range slices.Sorted(maps.Keys(term.Tags)) {
		if term.Tags[key] == "*" {
			add("tag-key", key)
		} else {
			add("tag:"+key, term.Tags[key])
		}
	}
	switch {
	case term.Owner != "":
		q.owners = []string{term.Owner}
	case term.Name != "":
		q.owners = []string{"amazon", "self"}
	}
	return q, q.key()
}

func (q query) key() string {
	texts := []string{fmt.Sprintf("owners %q", q.owners)}
	for _, f := range q.filters {
		texts = append(texts, fmt.Sprintf("%s %q", *f.Name, f.Values))
	}
	return strings.Join(texts, "; ")
}

// questions are the questions for images of all classes.
type questions struct {
	ids     map[string]bool
	queries map[string]query
}

// askImages asks for the images of all classes: those by id together, and each other question once.
func (r *Resolver) askImages(ctx context.Context, classes []*awsv1.EC2NodeClass, kubernetes string) {
	asks := questions{ids: map[string]bool{}, queries: map[string]query{}}
	for _, class := range classes {
		if unsupported(&class.Spec, kubernetes) != "" {
			continue
		}
		for _, term := range class.Spec.AMISelectorTerms {
			r.questionsOf(term, kubernetes, &asks)
		}
		if _, asked := class.Annotations[MinAgeAnnotation]; asked {
			for _, ami := range class.Status.AMIs {
				asks.ids[ami.ID] = true
			}
		}
	}
	var keys []string
	for id := range asks.ids {
		keys = append(keys, idKey(id))
	}
	keys = append(keys, slices.Collect(maps.Keys(asks.queries))...)
	holds := func(string, []image) time.Duration { return r.config.AMIRefresh }
	var ids []string
	for _, key := range r.knownImages.due(r.now(), keys, holds) {
		q, other := asks.queries[key]
		if !other {
			ids = append(ids, strings.TrimPrefix(key, idKey("")))
			continue
		}
		asked := r.now()
		if found, err := r.listImages(ctx, q); err != nil {
			r.knownImages.failed(key, r.now(), failureOf(describeImages, err))
		} else {
			r.knownImages.answered(key, asked, found)
		}
	}
	for chunk := range slices.Chunk(ids, mostValues) {
		r.askIDs(ctx, chunk)
	}
}

// questionsOf adds the questions of a term.
func (r *Resolver) questionsOf(term awsv1.AMISelectorTerm, kubernetes string, into *questions) {
	if term.ID != "" {
		into.ids[term.ID] = true
		return
	}
	alone := len(term.Tags) == 0 && term.Name == "" && term.Owner == ""
	for _, p := range parametersOf(term, kubernetes) {
		id := r.knownParameters.get(p.name).value
		switch {
		case !isImageID(id):
		case alone:
			into.ids[id] = true
		default:
			q, key := queryOf(term, id)
			into.queries[key] = q
		}
	}
	if term.Alias == "" && term.SSMParameter == "" && !alone {
		q, key := queryOf(term, "")
		into.queries[key] = q
	}
}

// askIDs asks for images by id. It uses a filter, so that an id that does not exist is not an error.
func (r *Resolver) askIDs(ctx context.Context, ids []string) {
	asked := r.now()
	name := "image-id"
	found, err := r.listImages(ctx, query{filters: []ec2types.Filter{{Name: &name, Values: ids}}})
	for _, id := range ids {
		if err != nil {
			r.knownImages.failed(idKey(id), r.now(), failureOf(describeImages, err))
			continue
		}
		mine := slices.Clone(found)
		mine = slices.DeleteFunc(mine, func(i image) bool { return i.id != id })
		r.knownImages.answered(idKey(id), asked, mine)
	}
}

func (r *Resolver) listImages(ctx context.Context, q query) (found []image, err error) {
	err = pages(ctx, func(ctx context.Context, token *string) (*string, error) {
		out, err := r.config.EC2.DescribeImages(ctx, &ec2.DescribeImagesInput{
			Owners: q.owners, Filters: q.filters, IncludeDeprecated: new(true), NextToken: token,
		})
		if err != nil || out.Images == nil {
			return nil, cmp.Or(err, errNoContent)
		}
		for _, i := range out.Images {
			found = append(found, imageOf(i))
		}
		return out.NextToken, nil
	})
	return found, err
}
