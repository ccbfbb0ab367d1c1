//! What a board measures or sets: exported, since programs call it unchecked, and not supported.

use crate::status;

macro_rules! unsupported {
    ($($name:ident)*) => {
        $(
            // Whatever the arguments are, none is looked at.
            #[unsafe(no_mangle)]
            extern "C" fn $name() -> u32 {
                status::NOT_SUPPORTED
            }
        )*
    };
}

unsupported! {
    nvmlDeviceGetArchitecture
    nvmlDeviceGetAttributes_v2
    nvmlDeviceGetBAR1MemoryInfo
    nvmlDeviceGetBrand
    nvmlDeviceGetClockInfo
    nvmlDeviceGetCpuAffinity
    nvmlDeviceGetCurrPcieLinkGeneration
    nvmlDeviceGetCurrPcieLinkWidth
    nvmlDeviceGetEccMode
    nvmlDeviceGetEnforcedPowerLimit
    nvmlDeviceGetFanSpeed
    nvmlDeviceGetGpuFabricInfo
    nvmlDeviceGetGpuFabricInfoV
    nvmlDeviceGetHandleBySerial
    nvmlDeviceGetMaxClockInfo
    nvmlDeviceGetMaxPcieLinkGeneration
    nvmlDeviceGetMaxPcieLinkWidth
    nvmlDeviceGetMemoryAffinity
    nvmlDeviceGetMemoryBusWidth
    nvmlDeviceGetMigMode
    nvmlDeviceGetNumaNodeId
    nvmlDeviceGetNvLinkCapability
    nvmlDeviceGetNvLinkRemoteDeviceType
    nvmlDeviceGetNvLinkRemotePciInfo_v2
    nvmlDeviceGetNvLinkState
    nvmlDeviceGetNvLinkVersion
    nvmlDeviceGetP2PStatus
    nvmlDeviceGetPerformanceState
    nvmlDeviceGetPowerManagementLimit
    nvmlDeviceGetPowerUsage
    nvmlDeviceGetSerial
    nvmlDeviceGetTemperature
    nvmlDeviceGetTopologyCommonAncestor
    nvmlDeviceGetTotalEccErrors
    nvmlDeviceGetTotalEnergyConsumption
    nvmlDeviceSetPersistenceMode
    nvmlSystemGetProcessName
}
