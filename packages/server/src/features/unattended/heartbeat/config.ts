import { type AgentHeartbeat, heartbeatFields } from '@gatehouse/contract';
import * as z from 'zod';

const fields = heartbeatFields;

/** `scheduler.heartbeat`: defaults for the beats of all agents, overridden by `agents.<id>.heartbeat`. */
export const HeartbeatConfig = z.strictObject({
  enabled: z.boolean().default(true).describe('False turns off the beats of all agents. Each agent must also turn on its own.'),
  intervalMs: fields.intervalMs.default(1_800_000),
  prompt: fields.prompt.optional(),
  model: fields.model.optional(),
  lightContext: fields.lightContext.default(true),
  ackMaxChars: fields.ackMaxChars.default(300),
  activeHours: fields.activeHours.optional(),
  toolPolicy: fields.toolPolicy.optional(),
  timeoutMs: fields.timeoutMs.default(120_000),
  showOk: fields.showOk.default(false),
  showAlerts: fields.showAlerts.default(true),
  alertThreshold: fields.alertThreshold.default(2),
  alertCooldownMs: fields.alertCooldownMs.default(300_000),
});
export type HeartbeatConfig = z.output<typeof HeartbeatConfig>;

/** Returns the settings of one agent, whose own values take precedence. */
export function settingsOf(overall: HeartbeatConfig, { enabled, ...own }: AgentHeartbeat): HeartbeatConfig {
  const given = Object.fromEntries(Object.entries(own).filter(([, value]) => value !== undefined));
  return { ...overall, ...given, enabled: overall.enabled && enabled };
}
