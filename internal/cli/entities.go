package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/onceward/onceward"
	"github.com/onceward/onceward/internal/cli/screen"
	"github.com/onceward/onceward/internal/cli/why"
	"github.com/onceward/onceward/internal/server/v1"
)

func entitiesCommand(a *app) *cobra.Command {
	c := group(&cobra.Command{
		Use:     "entities",
		Aliases: []string{"entity"},
		Short:   "the rows: one per sale, job or subscription, and why each is in its state",
	})
	c.AddCommand(entitiesList(a), entitiesShow(a))
	return c
}

type listFlags struct {
	source, kind, key, status, typ string
	limit                          int
}

// nothing says why a list is empty: an empty store, or a filter that fits
// nothing.
func (f *listFlags) nothing(many, one string) string {
	if f.source+f.kind+f.key+f.status+f.typ == "" {
		return "no " + many + " yet; `onceward send stripe` makes some"
	}
	return "no " + one + " fits the filter; without it the list has every " + one + " there is"
}

// limited adds --limit and checks it.
func (f *listFlags) limited(c *cobra.Command) {
	c.Flags().IntVar(&f.limit, "limit", 50, "the most to list")
	c.PreRunE = func(*cobra.Command, []string) error {
		if f.limit < 1 {
			return usage("--limit is a number from 1")
		}
		return nil
	}
}

func entitiesList(a *app) *cobra.Command {
	var f listFlags
	c := &cobra.Command{
		Use:   "list [--source S] [--kind K] [--status S] [--key K] [--limit N]",
		Short: "list rows, in the order of source, kind and key",
		Args:  args(cobra.NoArgs),
		RunE:  func(c *cobra.Command, _ []string) error { return a.listEntities(c.Context(), f) },
	}
	c.Flags().StringVar(&f.source, "source", "", "only of this source")
	c.Flags().StringVar(&f.kind, "kind", "", "only of this kind, as payment")
	c.Flags().StringVar(&f.status, "status", "", "only in this status")
	c.Flags().StringVar(&f.key, "key", "", "only with this key")
	f.limited(c)
	a.complete(c, "source", a.completeSources)
	return c
}

func (a *app) listEntities(ctx context.Context, f listFlags) error {
	return a.reading(ctx, func(_ *setup, store onceward.Reader) error {
		rows, err := store.Entities(ctx, onceward.EntityQuery{
			Source: f.source, Kind: f.kind, Key: f.key, Status: f.status, Limit: f.limit + 1,
		})
		if err != nil {
			return err
		}
		shown := rows[:min(f.limit, len(rows))]
		if a.json {
			out := v1.Entities{Entities: []v1.Entity{}}
			for i := range shown {
				out.Entities = append(out.Entities, v1.EntityOf(&shown[i]))
			}
			return a.printJSON(out)
		}
		if len(shown) == 0 {
			return a.print("%s", f.nothing("rows", "row"))
		}
		t := &screen.Table{Most: []int{12, 14, 36, 20, 10}, Whole: !isTerminal(a.Stdout)}
		t.Add("source", "kind", "key", "status", "changes", "")
		for i := range shown {
			e := &shown[i]
			t.Add(e.Source, e.Kind, e.Key, e.Status, fmt.Sprint(e.Version), summary(e))
		}
		if len(rows) > f.limit {
			t.Add("...", "", "", "", "", "more: --limit, or filter")
		}
		return t.Write(a.Stdout, "")
	})
}

// summary is what a row shows at a glance: the scope and its first fields.
func summary(e *onceward.Entity) string {
	var words []string
	if e.Scope.Account != "" || e.Scope.Mode != "" {
		words = append(words, e.Scope.String())
	}
	const most = 3
	for i, f := range screen.Fields(e.Data) {
		if i == most {
			break
		}
		words = append(words, f.Name+" "+f.Value)
	}
	return strings.Join(words, "  ")
}

func entitiesShow(a *app) *cobra.Command {
	var source, scope string
	var all bool
	c := &cobra.Command{
		Use:   "show [SOURCE] KIND KEY [--scope ACCOUNT/MODE] [--all]",
		Short: "show a row and why it is in its state",
		Long: `Shows a row, and why it is in its state: the fact or the condition that gave the status,
then each fact in order of arrival: what event said it, what it said, by which order it
was compared, its verdict, and what decided.

  applied   it changed the row          stale   it is older than what the row shows
  same      it told nothing new         held    it could not be computed; the reason is beside it

SOURCE may be left out where only one source has such a row.`,
		Args: args(cobra.RangeArgs(2, 3)),
		RunE: func(c *cobra.Command, given []string) error {
			if len(given) == 3 {
				source, given = given[0], given[1:]
			}
			return a.showEntity(c.Context(), source, given[0], given[1], scope, all)
		},
	}
	c.Flags().StringVar(&scope, "scope", "", "account and mode, as acct_1/live or /test, where several have the key")
	c.Flags().BoolVar(&all, "all", false, "every fact")
	c.ValidArgsFunction = a.completeEntities
	return c
}

func (a *app) showEntity(ctx context.Context, source, kind, key, scope string, all bool) error {
	return a.reading(ctx, func(s *setup, store onceward.Reader) error {
		e, err := findEntity(ctx, store, onceward.EntityQuery{Source: source, Kind: kind, Key: key}, scope)
		if err != nil {
			return err
		}
		facts, err := store.History(ctx, e.Ref)
		if err != nil {
			return err
		}
		history := v1.HistoryOf(e, facts, s.kind(e.Source, e.Kind))
		if a.json {
			return a.printJSON(history)
		}
		repeats, err := repeatsOf(ctx, store, facts)
		if err != nil {
			return err
		}
		return a.printLines(why.Story{History: history, Repeats: repeats, All: all}.Lines(a.colour()))
	})
}

// findEntity finds the one row that is meant.
func findEntity(ctx context.Context, store onceward.Reader, q onceward.EntityQuery, scope string) (*onceward.Entity, error) {
	rows, err := store.Entities(ctx, q)
	if err != nil {
		return nil, err
	}
	if scope != "" {
		want, err := onceward.ParseScope(scope)
		if err != nil {
			return nil, &usageError{err}
		}
		var kept []onceward.Entity
		for _, row := range rows {
			if row.Scope == want {
				kept = append(kept, row)
			}
		}
		rows = kept
	}
	switch len(rows) {
	case 0:
		return nil, noEntity(ctx, store, q)
	case 1:
		return store.Entity(ctx, rows[0].Ref)
	}
	var names []string
	for _, row := range rows {
		name := row.Source
		if text := row.Scope.String(); text != "" {
			name += " --scope " + text
		}
		names = append(names, "  "+screen.Clean(name))
	}
	return nil, fmt.Errorf("several rows have this key; name the source before the kind, or the scope:\n%s", strings.Join(names, "\n"))
}

// noEntity says what there is instead of a row.
func noEntity(ctx context.Context, store onceward.Reader, q onceward.EntityQuery) error {
	name := screen.Clean(q.Kind + " " + q.Key)
	same, err := store.Entities(ctx, onceward.EntityQuery{Kind: q.Kind, Limit: 1})
	if err != nil {
		return err
	}
	if len(same) > 0 {
		return fmt.Errorf("there is no %s; `onceward entities list --kind %s` shows those there are", name, shellWord(screen.Clean(q.Kind)))
	}
	rows, err := store.Entities(ctx, onceward.EntityQuery{Limit: maxKinds})
	if err != nil {
		return err
	}
	var kinds []string
	for i := range rows {
		if kind := screen.Clean(rows[i].Kind); !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) == 0 {
		return fmt.Errorf("there is no %s: the store has no rows yet; `onceward send stripe` makes some", name)
	}
	slices.Sort(kinds)
	return fmt.Errorf("there is no %s: no row is of that kind; the kinds there are: %s", name, strings.Join(kinds, ", "))
}

// maxKinds bounds the rows that are read to name the kinds, maxRepeats how many
// events are asked for their repeats.
const (
	maxKinds   = 500
	maxRepeats = 500
)

// repeatsOf says how often the events behind facts were delivered again.
func repeatsOf(ctx context.Context, store onceward.Reader, facts []onceward.StoredFact) (map[string]int64, error) {
	repeats := map[string]int64{}
	for i := range facts {
		name := fmt.Sprint(facts[i].EventID)
		if _, known := repeats[name]; known || len(repeats) >= maxRepeats {
			continue
		}
		e, err := store.Event(ctx, facts[i].EventID)
		if err != nil {
			return nil, err
		}
		repeats[name] = e.Repeats
	}
	return repeats, nil
}
