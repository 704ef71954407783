import { type AgentHeartbeat, heartbeatFields, once } from '@gatehouse/contract';
import * as z from 'zod';

/** `scheduler.heartbeat`: defaults for the beats of all agents, overridden by `agents.<id>.heartbeat`. */
export const HeartbeatConfig = once(() =>
  z.strictObject({
    enabled: z.boolean().default(true).describe('False turns off the beats of all agents. Each agent must also turn on its own.'),
    intervalMs: heartbeatFields().intervalMs.default(1_800_000),
    prompt: heartbeatFields().prompt.optional(),
    model: heartbeatFields().model.optional(),
    lightContext: heartbeatFields().lightContext.default(true),
    ackMaxChars: heartbeatFields().ackMaxChars.default(300),
    activeHours: heartbeatFields().activeHours.optional(),
    toolPolicy: heartbeatFields().toolPolicy.optional(),
    timeoutMs: heartbeatFields().timeoutMs.default(120_000),
    showOk: heartbeatFields().showOk.default(false),
    showAlerts: heartbeatFields().showAlerts.default(true),
    alertThreshold: heartbeatFields().alertThreshold.default(2),
    alertCooldownMs: heartbeatFields().alertCooldownMs.default(300_000),
    target: heartbeatFields().target.optional(),
  }),
);
export type HeartbeatConfig = z.output<ReturnType<typeof HeartbeatConfig>>;

/** Returns the settings of one agent, whose own values take precedence. */
export function settingsOf(overall: HeartbeatConfig, { enabled, ...own }: AgentHeartbeat): HeartbeatConfig {
  const given = Object.fromEntries(Object.entries(own).filter(([, value]) => value !== undefined));
  return { ...overall, ...given, enabled: overall.enabled && enabled };
}
