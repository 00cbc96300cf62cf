// What govc's import.spec and govmomi make of OVF descriptors, one JSON line for each path on standard input:
// a judge of bfinfra's own reader, without a process a descriptor.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/vmware/govmomi/ovf"
	"github.com/vmware/govmomi/ovf/importer"
)

type judged struct {
	Error    string
	Options  *importer.Options
	Hardware string
	CPUs     int32
	MemoryMB int64
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		if err := out.Encode(judge(lines.Text())); err != nil {
			panic(err)
		}
	}
}

func judge(path string) (found judged) {
	defer func() {
		if wrong := recover(); wrong != nil {
			found.Error = fmt.Sprint(wrong)
		}
	}()
	archive := &importer.FileArchive{Path: path}
	options, err := importer.Spec(path, archive, false, true)
	if err != nil {
		return judged{Error: err.Error()}
	}
	found.Options = options
	data, err := importer.ReadOvf(path, archive)
	if err != nil {
		return judged{Error: err.Error()}
	}
	envelope, err := importer.ReadEnvelope(data)
	if err != nil {
		return judged{Error: err.Error()}
	}
	spec, err := envelope.ToConfigSpecWithOptions(ovf.ToConfigSpecOptions{})
	if err != nil {
		found.Hardware = err.Error()
		return found
	}
	found.CPUs, found.MemoryMB = spec.NumCPUs, spec.MemoryMB
	return found
}
