// vcsim with what the tests need: hosts with GPUs, a WCP cluster, faults, delays, more VMs. A main round govmomi's simulator package.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	_ "github.com/vmware/govmomi/cns/simulator"
	_ "github.com/vmware/govmomi/eam/simulator"
	_ "github.com/vmware/govmomi/lookup/simulator"
	_ "github.com/vmware/govmomi/pbm/simulator"
	_ "github.com/vmware/govmomi/ssoadmin/simulator"
	_ "github.com/vmware/govmomi/sts/simulator"
	_ "github.com/vmware/govmomi/vapi/appliance/simulator"
	_ "github.com/vmware/govmomi/vapi/cis/tasks/simulator"
	_ "github.com/vmware/govmomi/vapi/cluster/simulator"
	_ "github.com/vmware/govmomi/vapi/crypto/simulator"
	_ "github.com/vmware/govmomi/vapi/esx/settings/simulator"
	_ "github.com/vmware/govmomi/vapi/namespace/simulator"
	_ "github.com/vmware/govmomi/vapi/simulator"
	_ "github.com/vmware/govmomi/vapi/vcenter/consumptiondomains/simulator"
	_ "github.com/vmware/govmomi/vapi/vm/simulator"
	_ "github.com/vmware/govmomi/vslm/simulator"
)

// ---- extension: passthrough-capable hosts -------------------------------

type passthruSystem struct {
	mo.HostPciPassthruSystem
	host *simulator.HostSystem
}

func (p *passthruSystem) UpdatePassthruConfig(ctx *simulator.Context, r *types.UpdatePassthruConfig) soap.HasFault {
	for _, c := range r.Config {
		cc := c.GetHostPciPassthruConfig()
		for i := range p.host.Config.PciPassthruInfo {
			in := p.host.Config.PciPassthruInfo[i].GetHostPciPassthruInfo()
			if in.Id == cc.Id {
				in.PassthruEnabled = cc.PassthruEnabled // active only after reboot
			}
		}
	}
	return &methods.UpdatePassthruConfigBody{Res: new(types.UpdatePassthruConfigResponse)}
}

func (p *passthruSystem) Refresh(ctx *simulator.Context, r *types.Refresh) soap.HasFault {
	return &methods.RefreshBody{Res: new(types.RefreshResponse)}
}

type gpuHost struct{ *simulator.HostSystem }

func (h *gpuHost) RebootHostTask(ctx *simulator.Context, r *types.RebootHost_Task) soap.HasFault {
	t := simulator.CreateTask(h.HostSystem, "rebootHost", func(*simulator.Task) (types.AnyType, types.BaseMethodFault) {
		if !h.Runtime.InMaintenanceMode && !r.Force {
			return nil, new(types.InvalidState)
		}
		for i := range h.Config.PciPassthruInfo {
			in := h.Config.PciPassthruInfo[i].GetHostPciPassthruInfo()
			in.PassthruActive = in.PassthruEnabled
		}
		now := time.Now()
		h.Runtime.BootTime = &now
		return nil, nil
	})
	return &methods.RebootHost_TaskBody{Res: &types.RebootHost_TaskResponse{Returnval: t.Run(ctx)}}
}

const gpuHostMemory = 1 << 40 // bytes; a server with GPUs has all its memory reserved, and vcsim's hosts have 4 GiB

func addGPUs(m *simulator.Model, n int, enabled bool) {
	for _, o := range m.Map().All("HostSystem") {
		h := o.(*simulator.HostSystem)
		var pt []types.BaseHostPciPassthruInfo
		h.Hardware.MemorySize = gpuHostMemory
		for i := 0; i < n; i++ {
			id := fmt.Sprintf("0000:%02x:00.0", 0x17+i*0x11)
			h.Hardware.PciDevice = append(h.Hardware.PciDevice, types.HostPciDevice{
				Id: id, ClassId: 0x0302, Bus: 0x17 + byte(i)*0x11, VendorId: 0x10de, DeviceId: 0x1db6,
				SubVendorId: 0x10de, SubDeviceId: 0x124a, VendorName: "NVIDIA Corporation", DeviceName: "GV100GL [Tesla V100 PCIe 32GB]"})
			pt = append(pt, &types.HostPciPassthruInfo{Id: id, DependentDevice: id, PassthruCapable: true,
				PassthruEnabled: enabled, PassthruActive: enabled, HardwareLabel: "gpu"})
		}
		h.Config.PciPassthruInfo = pt
		ps := &passthruSystem{host: h}
		ps.Self = types.ManagedObjectReference{Type: "HostPciPassthruSystem", Value: "pciPassthruSystem-" + h.Self.Value}
		ps.PciPassthruInfo = pt
		m.Map().Put(ps)
		h.ConfigManager.PciPassthruSystem = &ps.Self
	}
}

type envBrowser struct {
	*simulator.EnvironmentBrowser
	m *simulator.Model
}

func (b *envBrowser) QueryConfigTarget(ctx *simulator.Context, r *types.QueryConfigTarget) soap.HasFault {
	res := b.EnvironmentBrowser.QueryConfigTarget(ctx, r)
	t := res.(*methods.QueryConfigTargetBody).Res.Returnval
	for _, h := range b.hosts(ctx, r.Host) {
		active := map[string]bool{}
		for _, i := range h.Config.PciPassthruInfo {
			active[i.GetHostPciPassthruInfo().Id] = i.GetHostPciPassthruInfo().PassthruActive
		}
		for _, d := range h.Hardware.PciDevice {
			if active[d.Id] {
				t.PciPassthrough = append(t.PciPassthrough, &types.VirtualMachinePciPassthroughInfo{
					PciDevice: d, SystemId: h.Hardware.SystemInfo.Uuid})
				t.DynamicPassthrough = append(t.DynamicPassthrough, types.VirtualMachineDynamicPassthroughInfo{
					VendorName: d.VendorName, DeviceName: d.DeviceName, CustomLabel: "gpu", VendorId: int32(d.VendorId), DeviceId: int32(d.DeviceId)})
			}
		}
	}
	return res
}

// hosts: the one asked for, or all of the cluster that the browser belongs to.
func (b *envBrowser) hosts(ctx *simulator.Context, asked *types.ManagedObjectReference) []*simulator.HostSystem {
	var found []*simulator.HostSystem
	for _, o := range ctx.Map.All("ClusterComputeResource") {
		c := o.(*simulator.ClusterComputeResource)
		for _, ref := range c.Host {
			h, ok := ctx.Map.Get(ref).(*simulator.HostSystem)
			if ok && ((asked != nil && ref == *asked) || (asked == nil && c.EnvironmentBrowser != nil && *c.EnvironmentBrowser == b.Self)) {
				found = append(found, h)
			}
		}
	}
	return found
}

// fastVMs creates n VMs with 64 goroutines (vcsim's own Create is sequential and polls each task every 10 ms).
func fastVMs(m *simulator.Model, n int) {
	ctx := context.Background()
	c, _ := vim25.NewClient(ctx, m.Service)
	f := find.NewFinder(c)
	dc, _ := f.DefaultDatacenter(ctx)
	f.SetDatacenter(dc)
	folders, _ := dc.Folders(ctx)
	pool, _ := f.ResourcePool(ctx, "DC0_C0/Resources")
	var wg sync.WaitGroup
	ch := make(chan int, 64)
	for w := 0; w < 64; w++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range ch {
				spec := types.VirtualMachineConfigSpec{Name: fmt.Sprintf("vm-%05d", i), GuestId: "otherGuest",
					Files: &types.VirtualMachineFileInfo{VmPathName: "[LocalDS_0]"}}
				t, err := folders.VmFolder.CreateVM(ctx, spec, pool, nil)
				if err == nil {
					_, err = t.WaitForResult(ctx)
				}
				if err != nil {
					log.Print(err)
				}
			}
		}()
	}
	for i := 0; i < n; i++ {
		ch <- i
	}
	close(ch)
	wg.Wait()
}

func main() {
	m := simulator.VPX()
	l := flag.String("l", "127.0.0.1:0", "")
	flag.IntVar(&m.Datacenter, "dc", m.Datacenter, "")
	flag.IntVar(&m.Cluster, "cluster", m.Cluster, "")
	flag.IntVar(&m.ClusterHost, "host", m.ClusterHost, "")
	flag.IntVar(&m.Host, "standalone-host", m.Host, "")
	flag.IntVar(&m.Datastore, "ds", m.Datastore, "")
	flag.IntVar(&m.Machine, "vm", m.Machine, "")
	flag.IntVar(&m.Pool, "pool", m.Pool, "")
	flag.IntVar(&m.Portgroup, "pg", m.Portgroup, "")
	flag.IntVar(&m.Folder, "folder", m.Folder, "")
	flag.BoolVar(&m.Autostart, "autostart", m.Autostart, "")
	flag.StringVar(&m.ServiceContent.About.ApiVersion, "api-version", m.ServiceContent.About.ApiVersion, "")
	flag.IntVar(&m.DelayConfig.Delay, "delay", 0, "")
	flag.Float64Var(&m.DelayConfig.DelayJitter, "delay-jitter", 0, "")
	md := flag.String("method-delay", "", "")
	td := flag.String("task-delay", "", "")
	tr := flag.String("trace-file", "", "")
	load := flag.String("load", "", "")
	esx := flag.Bool("esx", false, "")
	gpus := flag.Int("gpus", 0, "")
	passthru := flag.Bool("passthru", false, "GPUs are passed through from the start")
	wcp := flag.Bool("wcp", false, "the cluster DC0_C1 is called WCP-compute, so that it has a supervisor")
	fast := flag.Int("fastvm", 0, "")
	fleetFile := flag.String("fleet", "", "machines with GPUs and marks: see fleet.go")
	shim := flag.Bool("shim", false, "")
	user := flag.String("username", "", "")
	pass := flag.String("password", "", "")
	cert := flag.String("tlscert", "", "")
	key := flag.String("tlskey", "", "")
	flag.Parse()
	if *tr != "" {
		f, err := os.Create(*tr)
		if err != nil {
			log.Fatal(err)
		}
		simulator.TraceFile = f
		simulator.Trace = true
	}
	parse := func(s string) map[string]int {
		r := map[string]int{}
		for _, kv := range strings.Split(s, ",") {
			p := strings.Split(kv, ":")
			if len(p) == 2 {
				r[p[0]], _ = strconv.Atoi(p[1])
			}
		}
		return r
	}
	if *md != "" {
		m.DelayConfig.MethodDelay = parse(*md)
	}
	if *td != "" {
		simulator.TaskDelay.MethodDelay = parse(*td)
	}
	if *esx {
		e := simulator.ESX()
		e.Machine, e.Autostart, e.DelayConfig = m.Machine, m.Autostart, m.DelayConfig
		m = e
	}
	t0 := time.Now()
	var err error
	if *load != "" {
		err = m.Load(*load)
	} else {
		err = m.Create()
	}
	if err != nil {
		log.Fatal(err)
	}
	if *fast > 0 {
		fastVMs(m, *fast)
	}
	if *gpus > 0 {
		addGPUs(m, *gpus, *passthru)
		for _, o := range m.Map().AllReference("EnvironmentBrowser") {
			m.Map().Put(&envBrowser{o.(*simulator.EnvironmentBrowser), m})
		}
	}
	if *fleetFile != "" {
		all := fleet{}
		all.read(*fleetFile)
		if err := all.build(m); err != nil {
			log.Fatal(err)
		}
	}
	if *wcp {
		for _, each := range m.Map().All("ClusterComputeResource") { // in no order
			if cluster := each.(*simulator.ClusterComputeResource); cluster.Name == "DC0_C1" {
				cluster.Name = "WCP-compute"
			}
		}
	}
	m.Service.RegisterEndpoints = true
	m.Service.Listen = &url.URL{Host: *l}
	if *user != "" {
		m.Service.Listen.User = url.UserPassword(*user, *pass)
	}
	m.Service.TLS = new(tls.Config)
	if *cert != "" {
		c, err := tls.LoadX509KeyPair(*cert, *key)
		if err != nil {
			log.Fatal(err)
		}
		m.Service.TLS.Certificates = []tls.Certificate{c}
	}
	m.Service.ServeMux = http.NewServeMux()
	// SOAP methods vcsim lacks on types it type-asserts (HostSystem): "POST /sdk" is more specific than vcsim's "/sdk"
	m.Service.ServeMux.HandleFunc("POST /sdk", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if bytes.Contains(body, []byte("<RebootHost_Task")) {
			me, err := simulator.UnmarshalBody(types.TypeFunc(), body)
			if err == nil {
				h := m.Map().Get(me.This).(*simulator.HostSystem)
				ctx := &simulator.Context{Context: context.Background(), Map: m.Map(), Session: &simulator.Session{Registry: m.Map(), Map: m.Map()}}
				res := (&gpuHost{h}).RebootHostTask(ctx, me.Body.(*types.RebootHost_Task))
				ref := res.(*methods.RebootHost_TaskBody).Res.Returnval
				fmt.Fprintf(w, `<?xml version="1.0"?><soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"><soapenv:Body><RebootHost_TaskResponse xmlns="urn:vim25"><returnval type="Task">%s</returnval></RebootHost_TaskResponse></soapenv:Body></soapenv:Envelope>`, ref.Value)
				return
			}
		}
		if !*shim {
			m.Service.ServeSDK(w, r)
			return
		}
		rec := httptest.NewRecorder()
		m.Service.ServeSDK(rec, r)
		out := rec.Body.Bytes()
		if bytes.Contains(body, []byte("<Fetch")) && bytes.Contains(out, []byte("<RetrievePropertiesExResponse")) {
			out = []byte(`<?xml version="1.0"?><soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"><soapenv:Body><FetchResponse xmlns="urn:vim25"></FetchResponse></soapenv:Body></soapenv:Envelope>`)
		}
		out = bytes.ReplaceAll(out, []byte("<faultToleranceState></faultToleranceState>"), []byte("<faultToleranceState>notConfigured</faultToleranceState>"))
		out = bytes.ReplaceAll(out, []byte("<recordReplayState></recordReplayState>"), []byte("<recordReplayState>inactive</recordReplayState>"))
		for k, v := range rec.Header() {
			w.Header()[k] = v
		}
		w.Header().Del("Content-Length")
		w.WriteHeader(rec.Code)
		_, _ = w.Write(out)
	})
	// control endpoint: fault rules
	m.Service.ServeMux.HandleFunc("/_ctl/fault", func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case "DELETE":
			m.Service.ClearFaultRules()
		case "POST":
			var x struct {
				Method, Type, Name, Message      string
				Kind, Delay, MaxCount, SkipCount int
				Probability                      float64
			}
			if err := json.NewDecoder(r.Body).Decode(&x); err != nil {
				http.Error(w, err.Error(), 400)
				return
			}
			if x.Type == "" {
				x.Type = "*"
			}
			if x.Name == "" {
				x.Name = "*"
			}
			if x.Probability == 0 {
				x.Probability = 1
			}
			m.Service.AddFaultRule(&simulator.FaultInjectionRule{MethodName: x.Method, ObjectType: x.Type, ObjectName: x.Name,
				Probability: x.Probability, FaultType: simulator.FaultType(x.Kind), Message: x.Message, Delay: x.Delay,
				MaxCount: x.MaxCount, SkipCount: x.SkipCount, Enabled: true})
		case "GET":
			_ = json.NewEncoder(w).Encode(m.Service.GetFaultStats())
		}
	})
	// control endpoint: seconds from the head of an upload to its last byte, of each since it was last asked
	var taken []float64
	var taking sync.Mutex
	upload := func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		simulator.ServeNFC(w, r)
		taking.Lock()
		taken = append(taken, time.Since(began).Seconds())
		taking.Unlock()
	}
	m.Service.ServeMux.HandleFunc("PUT /nfc/", upload)
	m.Service.ServeMux.HandleFunc("POST /nfc/", upload)
	m.Service.ServeMux.HandleFunc("/_ctl/uploads", func(w http.ResponseWriter, r *http.Request) {
		taking.Lock()
		defer taking.Unlock()
		_ = json.NewEncoder(w).Encode(taken)
		taken = nil
	})
	m.Service.ServeMux.HandleFunc("/_ctl/status", func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Query().Get("code"))
		simulator.StatusSDK = n
	})
	s := m.Service.NewServer()
	fmt.Printf("URL=%s pid=%d create=%.2fs\n", s.URL, os.Getpid(), time.Since(t0).Seconds())
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGINT, syscall.SIGTERM)
	<-c
	m.Remove()
}
