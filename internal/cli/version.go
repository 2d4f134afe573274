package cli

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// development is the version of a program that is no release.
const development = "devel"

// version is set by the linker in a release.
var version = development

func versionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "the version of this program",
		Args:  args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			v := buildVersion()
			if a.json {
				return a.printJSON(map[string]string{
					"version": v, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH,
				})
			}
			return a.print("onceward %s %s %s/%s", v, runtime.Version(), runtime.GOOS, runtime.GOARCH)
		},
	}
}

// buildVersion is the module's version, or the revision it was built from.
func buildVersion() string {
	if version != development {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return development + "-" + s.Value[:12]
		}
	}
	return development
}
