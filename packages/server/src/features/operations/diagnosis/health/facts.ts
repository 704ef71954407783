/** What the findings and the report are derived from: sums over the records of a window. */
export interface HealthFacts {
  readonly windowHours: number;
  readonly sessions: SessionCounts;
  /** The same for the last hour of the window. */
  readonly lastHour: SessionCounts;
  readonly degradedByCause: Readonly<Record<string, number>>;
  readonly errorKinds: readonly { readonly kind: string; readonly count: number }[];
  readonly exitReasons: Readonly<Record<string, number>>;
  readonly turns: number;
  readonly tokens: number;
  readonly costNano: number | null;
  readonly offSessionNano: number | null;
  readonly agents: readonly string[];
  readonly channels: readonly string[];
  readonly tools: Readonly<Record<string, { readonly ok: number; readonly failed: number }>>;
  readonly breakerTrips: number;
  readonly servedBelow: number;
  readonly orchestrate: { readonly total: number; readonly failed: number };
  readonly authored: { readonly small: ValidCounts; readonly frontier: ValidCounts };
  /** Requests to speak or to listen. */
  readonly voice: { readonly total: number; readonly failed: number };
  readonly gates: readonly ({ readonly agentId: string } & GateCounts)[];
  readonly autonomy: AutonomyCounts | undefined;
  readonly transports: TransportFacts;
  readonly deliveries: DeliveryCounts;
  /** Records whose steps were read, and those that were not. */
  readonly read: number;
  readonly skipped: number;
}

/** Names of the channels that need attention. */
export interface TransportFacts {
  readonly down: readonly string[];
  readonly silent: readonly string[];
  readonly paused: readonly string[];
}

/** Messages to chats, by part. */
export interface DeliveryCounts {
  /** Rejected or expired. */
  readonly dead: number;
  readonly unknown: number;
  /** Pending for longer than is usual. */
  readonly waiting: number;
}

export interface SessionCounts {
  readonly total: number;
  readonly degraded: number;
  /** Degraded ones that were answered, although a tool failed. */
  readonly delivered: number;
}

export interface ValidCounts {
  readonly total: number;
  readonly valid: number;
}

export interface GateCounts {
  readonly fires: number;
  readonly skipped: number;
  readonly failedOpen: number;
  readonly turnsSaved: number;
  readonly toolCalls: number;
}

export interface AutonomyCounts {
  readonly total: number;
  readonly degraded: number;
  readonly orphaned: number;
  readonly resumed: number;
  readonly revoked: number;
  readonly killed: number;
  readonly breakerTrips: number;
  readonly denialBreakerTrips: number;
  readonly budgetBreaches: number;
  readonly costNano: number | null;
  readonly worstRootRunId: string | undefined;
}
