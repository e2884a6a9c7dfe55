//! The feature gates of kube-apiserver 1.37, with their stages and defaults.

use super::Stage;

/// Gates with the same stage and default.
#[derive(Debug)]
pub(super) struct KubernetesGate {
    pub(super) stage: Stage,
    pub(super) default: bool,
    /// A locked gate can only be set to its default.
    pub(super) locked: bool,
    names: &'static str,
}

impl KubernetesGate {
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.names.split_ascii_whitespace()
    }
}

const fn gates(stage: Stage, default: bool, locked: bool, names: &'static str) -> KubernetesGate {
    KubernetesGate {
        stage,
        default,
        locked,
        names,
    }
}

/// All gates except the switchable ones.
pub(super) static KUBERNETES: [KubernetesGate; 9] = [
    gates(
        Stage::Alpha,
        false,
        false,
        "
         APIServerWebhookAuthenticationToken APIServingWithRoutine AtomicWriteVolumeUserFields
         CPUManagerPolicyAlphaOptions CRIListStreaming CSIVolumeHealth ClientsAllowCBOR ClientsPreferCBOR
         CloudControllerManagerWatchBasedRoutesReconciliation CloudControllerManagerWebhook CompositePodGroup
         ConsistentListFromCacheSkipTimeoutFallback ContainerStopSignals
         ControllerManagerReleaseLeaderElectionLockOnExit CrossNamespaceVolumeDataSource DRADerivedAttributes
         DRADeviceCompatibilityGroups DRAListTypeAttributes DRANodeAllocatableResources
         DRAOptionalNodeOperations DRAPartitionableDevicesType DRAResourcePoolStatus DefaultPodSysctls
         EmptyDirVolumeMode EventedPLEG EvictionRequestAPI GRPCContainerProbeTLS H2CContainerProbe
         ImageVolumeWithDigest InPlacePodVerticalScalingExclusiveCPUs
         InPlacePodVerticalScalingExclusiveMemory InPlacePodVerticalScalingMemoryBackedVolumes
         InPlacePodVerticalScalingSchedulerPreemption InterPodAffinityHostnameFastPath
         KubeProxyNFTablesLocalhostNodePorts KubeletAllocatedPodsEndpoint LoggingAlphaOptions
         MutablePVNodeAffinity NodeLifecycleConditions PodGroupPreemptionPolicy PodLogsQuerySplitStreams
         QOSReserved ReduceDefaultCrashLoopBackOffDecay RuntimeClassInImageCriApi SchedulerPreQueueingHints
         ShardedListAndWatch StatefulSetRecreateStrategy StorageVersionAPI TaintTolerationComparisonOperators
         TopologyAwareWorkloadScheduling TopologyManagerPolicyAlphaOptions UserNamespacesHostNetworkSupport
         VolumeBindMountOptions WindowsCPUAndMemoryAffinity WorkloadWithJob
        ",
    ),
    gates(
        Stage::Beta,
        false,
        false,
        "
         CoordinatedLeaderElection DRAFractionalCapacityRange DRAWorkloadResourceClaims GenericWorkload
         LocalStorageCapacityIsolationFSQuotaMonitoring PodAndContainerStatsFromCRI PodLevelResourceManagers
         SchedulerAsyncAPICalls
        ",
    ),
    gates(
        Stage::Beta,
        true,
        false,
        "
         APIResponseCompression APIServerIdentity AllowParsingUserUIDFromCertAuth
         AllowUnsafeMalformedObjectDeletion AtomicFIFO AuthorizePodWebsocketUpgradeCreatePermission
         CPUManagerPolicyBetaOptions CRDObservedGenerationTracking ClearingNominatedNodeNameAfterBinding
         ClientsAllowCARotation ClientsAllowTLSCacheGC ComponentFlagz ComponentStatusz
         ConcurrentWatchObjectDecode ConstrainedImpersonation ContainerCheckpoint ContainerRestartRules
         ContextualLogging DRAConsumableCapacity DRADeviceBindingConditions DRAPartitionableDevices
         DRAResourceClaimGranularStatusAuthorization DRASchedulerFilterTimeout DeclarativeValidationBeta
         DeploymentReplicaSetTerminatingReplicas DetectCacheInconsistency EnvFiles EtcdRangeStream
         ExcludeAdmissionWebhookVirtualResources ExtendWebSocketsToKubelet GracefulNodeShutdown
         GracefulNodeShutdownBasedOnPodPriority HPAGeneration HPAOptimizedSelectorStore HPAScaleToZero
         HugepageAwareEviction InOrderInformersBatchProcess InPlacePodLevelResourcesVerticalScaling
         KubeletCrashLoopBackOffMax KubeletEnsureSecretPulledImages KubeletInUserNamespace
         KubeletSeparateDiskGC KubeletServiceAccountTokenForCredentialProviders ListFromCacheSnapshot
         LoggingBetaOptions ManifestBasedAdmissionControlConfig MatchLabelKeysInPodTopologySpread
         MatchLabelKeysInPodTopologySpreadSelectorMerge MaxUnavailableStatefulSet MemoryQoS
         MutablePodResourcesForSuspendedJobs MutableSchedulingDirectivesForSuspendedJobs NFTablesNetlink
         NativeHistograms NodeControllerLeaseCircuitBreaker NominatedNodeNameForExpectation OpenAPIEnums
         OpportunisticBatching PersistentVolumeClaimUnusedSinceTime PodDeletionCost PodLevelResources
         PodLevelResourcesFixDefaulting PodLevelResourcesFixKubeletQOSClass PodTopologyLabelsAdmission
         PodsAPI PortForwardWebsockets ReloadKubeletClientCAFile ReloadKubeletServerCertificateFile
         RemoteRequestHeaderUID ResourceHealthStatus ResourceHealthStatusMessage
         RestartAllContainersOnContainerExits RotateKubeletServerCertificate SchedulerAsyncPreemption
         SchedulerPopFromBackoffQ ServiceAccountNodeAudienceRestriction SizeBasedListCostEstimate
         StaleControllerConsistencyDaemonSet StaleControllerConsistencyHPA StaleControllerConsistencyJob
         StaleControllerConsistencyReplicaSet StaleControllerConsistencyStatefulSet
         StatefulSetSemanticRevisionComparison StorageCapacityScoring StorageVersionHash
         StrictIPCIDRValidation StructuredAuthenticationConfigurationEgressSelector
         StructuredAuthenticationConfigurationJWKSMetrics TokenRequestServiceAccountUIDValidation
         TopologyManagerPolicyBetaOptions TranslateStreamCloseWebsocketRequests
         UnauthenticatedHTTP2DOSMitigation UnknownVersionInteroperabilityProxy UnlockWhileProcessingFIFO
         VolumeLimitScaling WatchList WatchListClient WatchListCompression WebhookRoundTripLoadBalancing
         WindowsGracefulNodeShutdown
        ",
    ),
    gates(
        Stage::General,
        true,
        false,
        "
         AllowServiceExternalIPs ClusterTrustBundle ClusterTrustBundleProjection CustomCPUCFSQuotaPeriod
         DRADeviceTaintRules DRADeviceTaints InformerResourceVersion MutatingAdmissionPolicy
         PodCertificateRequest SELinuxMount StorageVersionMigrator
        ",
    ),
    gates(
        Stage::General,
        true,
        true,
        "
         CPUManagerPolicyOptions CSIServiceAccountTokenSecrets CustomResourceFieldSelectors DRAAdminAccess
         DRAExtendedResource DRAPrioritizedList DRAResourceClaimDeviceStatus DeclarativeValidation
         DisableAllocatorDualWrite DynamicResourceAllocation ExecProbeTimeout
         ExternalServiceAccountTokenSigner HPAConfigurableTolerance HostnameOverride ImageMaximumGCAge
         ImageVolume InOrderInformers InPlacePodVerticalScaling InPlacePodVerticalScalingInitContainers
         JobManagedBy KubeletCgroupDriverFromCRI KubeletFineGrainedAuthz KubeletPSI
         KubeletPodResourcesDynamicResources KubeletPodResourcesGet KubeletTracing
         MatchLabelKeysInPodAffinity MultiCIDRServiceAllocator MutableCSINodeAllocatableCount
         NFTablesProxyMode NodeDeclaredFeatures NodeInclusionPolicyInPodTopologySpread NodeLogQuery NodeSwap
         PLEGOnDemandRelist PodObservedGenerationTracking PodReadyToStartContainersCondition
         PodSchedulingReadiness PreferSameTrafficDistribution ProcMountType RecoverVolumeExpansionFailure
         RecursiveReadOnlyMounts RelaxedEnvironmentVariableValidation RelaxedServiceNameValidation
         SELinuxChangePolicy SELinuxMountReadWriteOncePod SeparateTaintEvictionController
         ServiceAccountTokenJTI ServiceAccountTokenNodeBinding ServiceAccountTokenNodeBindingValidation
         ServiceAccountTokenPodNodeInfo SupplementalGroupsPolicy SystemdWatchdog TopologyManagerPolicyOptions
         UserNamespacesSupport VolumeAttributesClass WatchCacheInitializationPostStartHook WinDSR WinOverlay
        ",
    ),
    gates(
        Stage::Deprecated,
        false,
        false,
        "
         AllowDNSOnlyNodeCSR AllowInsecureKubeletCertificateSigningRequests
         ChangeContainerStatusOnKubeletRestart KMSv1 KubeletRegistrationGetOnExistsOnly WindowsHostNetwork
        ",
    ),
    gates(
        Stage::Deprecated,
        true,
        false,
        "
         KubeProxyIPVS KubeletPodResourcesListUseActivePods ServiceCIDRStatusFieldWiping
         StorageNamespaceIndex
        ",
    ),
    gates(
        Stage::Deprecated,
        false,
        true,
        "
         AllowOverwriteTerminationGracePeriodSeconds DeclarativeValidationTakeover GitRepoVolumeDriver
         SeparateCacheWatchRPC
        ",
    ),
    gates(
        Stage::Deprecated,
        true,
        true,
        "
         AggregatedDiscoveryRemoveBetaType DisableCPUQuotaWithExclusiveCPUs DisableNodeKubeProxyVersion
        ",
    ),
];
