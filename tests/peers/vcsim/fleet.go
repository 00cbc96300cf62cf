// A fleet from a file (benchmarks/fleet.py writes it): many machines with their GPUs and marks, running, without a call over the network.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"sync"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/types"
)

type fleet struct {
	Attribute string            // the hosts' custom attribute that Notes go into
	Notes     map[string]string // by host
	Machines  []machine
}

type machine struct {
	Name, Host, UUID, Network, IP string
	CPUs                          int32
	MemoryMB                      int64
	Cards                         []string          // PCI addresses
	DisksGB                       []int64           // capacities
	Extra, Properties             map[string]string // extraConfig; vApp properties by id
}

func (f *fleet) read(file string) {
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, f)
	}
	if err != nil {
		log.Fatal(err)
	}
}

func (w machine) spec() types.VirtualMachineConfigSpec {
	s := types.VirtualMachineConfigSpec{Name: w.Name, GuestId: "vmwarePhoton64Guest", InstanceUuid: w.UUID, NumCPUs: w.CPUs, MemoryMB: w.MemoryMB,
		MemoryReservationLockedToMax: types.NewBool(true), Firmware: "efi", Files: &types.VirtualMachineFileInfo{VmPathName: "[LocalDS_0]"}}
	add := func(d types.BaseVirtualDevice, file types.VirtualDeviceConfigSpecFileOperation) {
		s.DeviceChange = append(s.DeviceChange, &types.VirtualDeviceConfigSpec{Operation: types.VirtualDeviceConfigSpecOperationAdd, FileOperation: file, Device: d})
	}
	add(&types.ParaVirtualSCSIController{VirtualSCSIController: types.VirtualSCSIController{
		SharedBus: types.VirtualSCSISharingNoSharing, VirtualController: types.VirtualController{VirtualDevice: types.VirtualDevice{Key: -100}}}}, "")
	for i, size := range w.DisksGB {
		add(&types.VirtualDisk{CapacityInKB: size << 20, VirtualDevice: types.VirtualDevice{Key: int32(-101 - i), ControllerKey: -100, UnitNumber: types.NewInt32(int32(i)),
			Backing: &types.VirtualDiskFlatVer2BackingInfo{
				VirtualDeviceFileBackingInfo: types.VirtualDeviceFileBackingInfo{FileName: fmt.Sprintf("[LocalDS_0] %s/%s-%d.vmdk", w.Name, w.Name, i)}, DiskMode: "persistent", ThinProvisioned: types.NewBool(true)}}}, types.VirtualDeviceConfigSpecFileOperationCreate)
	}
	add(&types.VirtualVmxnet3{VirtualVmxnet: types.VirtualVmxnet{VirtualEthernetCard: types.VirtualEthernetCard{VirtualDevice: types.VirtualDevice{Key: -300,
		Backing: &types.VirtualEthernetCardNetworkBackingInfo{VirtualDeviceDeviceBackingInfo: types.VirtualDeviceDeviceBackingInfo{DeviceName: w.Network}}}}}}, "")
	for i, address := range w.Cards {
		add(&types.VirtualPCIPassthrough{VirtualDevice: types.VirtualDevice{Key: int32(-200 - i), Backing: &types.VirtualPCIPassthroughDeviceBackingInfo{
			VirtualDeviceDeviceBackingInfo: types.VirtualDeviceDeviceBackingInfo{DeviceName: "GV100GL [Tesla V100 PCIe 32GB]"}, Id: address, DeviceId: "1db6", SystemId: "BYPASS", VendorId: 0x10de}}}, "")
	}
	for k, v := range w.Extra {
		s.ExtraConfig = append(s.ExtraConfig, &types.OptionValue{Key: k, Value: v})
	}
	app := &types.VmConfigSpec{}
	for k, v := range w.Properties {
		app.Property = append(app.Property, types.VAppPropertySpec{ArrayUpdateSpec: types.ArrayUpdateSpec{Operation: types.ArrayUpdateOperationAdd},
			Info: &types.VAppPropertyInfo{Key: int32(len(app.Property)), Id: k, Type: "string", UserConfigurable: types.NewBool(true), Value: v}})
	}
	s.VAppConfig = app
	return s
}

// run says that the guest is up.
func (w machine) run(m *simulator.Model, ref types.ManagedObjectReference) {
	vm := m.Map().Get(ref).(*simulator.VirtualMachine)
	vm.Runtime.PowerState, vm.Summary.Runtime.PowerState = types.VirtualMachinePowerStatePoweredOn, types.VirtualMachinePowerStatePoweredOn
	vm.Runtime.FaultToleranceState = types.VirtualMachineFaultToleranceStateNotConfigured // "", vcsim's own, is no value of either that clients can read
	vm.Runtime.RecordReplayState = types.VirtualMachineRecordReplayStateInactive
	vm.Summary.Runtime.FaultToleranceState, vm.Summary.Runtime.RecordReplayState = vm.Runtime.FaultToleranceState, vm.Runtime.RecordReplayState
	vm.Guest.ToolsRunningStatus, vm.Guest.IpAddress = string(types.VirtualMachineToolsRunningStatusGuestToolsRunning), w.IP
}

func (f *fleet) build(m *simulator.Model) error {
	ctx := context.Background()
	c, err := vim25.NewClient(ctx, m.Service)
	if err != nil {
		return err
	}
	finder := find.NewFinder(c)
	dc, err := finder.DefaultDatacenter(ctx)
	if err != nil {
		return err
	}
	folders, err := dc.Folders(ctx)
	if err != nil {
		return err
	}
	hosts := map[string]*simulator.HostSystem{}
	for _, each := range m.Map().All("HostSystem") {
		h := each.(*simulator.HostSystem)
		hosts[h.Name] = h
	}
	if err = f.note(ctx, c, hosts); err != nil {
		return err
	}
	work, failed, wait := make(chan machine), make(chan error, len(f.Machines)), sync.WaitGroup{}
	for range 64 {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for w := range work {
				if err := w.build(ctx, m, c, folders, hosts[w.Host]); err != nil {
					failed <- fmt.Errorf("%s: %w", w.Name, err)
				}
			}
		}()
	}
	for _, w := range f.Machines {
		work <- w
	}
	close(work)
	wait.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

func (w machine) build(ctx context.Context, m *simulator.Model, c *vim25.Client, folders *object.DatacenterFolders, host *simulator.HostSystem) error {
	if host == nil {
		return fmt.Errorf("there is no host %s", w.Host)
	}
	var pool types.ManagedObjectReference
	switch home := m.Map().Get(*host.Parent).(type) {
	case *simulator.ClusterComputeResource:
		pool = *home.ResourcePool
	default:
		return fmt.Errorf("%s is in no cluster", w.Host)
	}
	task, err := folders.VmFolder.CreateVM(ctx, w.spec(), object.NewResourcePool(c, pool), object.NewHostSystem(c, host.Self))
	if err != nil {
		return err
	}
	info, err := task.WaitForResult(ctx)
	if err != nil {
		return err
	}
	w.run(m, info.Result.(types.ManagedObjectReference))
	return nil
}

func (f *fleet) note(ctx context.Context, c *vim25.Client, hosts map[string]*simulator.HostSystem) error {
	if f.Attribute == "" {
		return nil
	}
	fields, err := object.GetCustomFieldsManager(c)
	if err != nil {
		return err
	}
	def, err := fields.Add(ctx, f.Attribute, "HostSystem", nil, nil)
	if err != nil {
		return err
	}
	for name, note := range f.Notes {
		h := hosts[name]
		if h == nil {
			return fmt.Errorf("there is no host %s", name)
		}
		if err := fields.Set(ctx, h.Self, def.Key, note); err != nil {
			return err
		}
	}
	return nil
}
