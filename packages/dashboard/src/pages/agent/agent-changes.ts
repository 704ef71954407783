import type { Client } from '@gatehouse/client';
import { type ConfigChange, configChanges } from '../../data/config-changes.ts';
import type { FieldErrors } from '../../data/field-errors.ts';
import type { Change } from '../../ui/schema/changes.ts';
import { isRecord, withValueAt } from '../../ui/schema/paths.ts';
import type { Agent } from './agent-page.tsx';

/** Returns the patch for `agents.update` that makes changes below `agents.<id>`. */
export function patchOf(changes: readonly Change[]): Record<string, unknown> {
  const patch = changes.reduce<unknown>((current, { path, value }) => (path.length > 2 ? withValueAt(current, path.slice(2), value) : current), {});
  return isRecord(patch) ? { ...patch } : {};
}

/** Returns the keys of the effective configuration that changes would change. Nothing is written. */
export async function previewAgent(client: Client, agent: Agent, changes: readonly Change[], signal: AbortSignal): Promise<readonly ConfigChange[]> {
  const { agentId, config } = agent;
  const merged = await client.call('agents.update', { agentId, config: patchOf(changes), dryRun: true }, { signal });
  return configChanges(config, merged.config);
}

/** Moves messages about keys of an agent to their places in the whole configuration. */
export function placedErrors(errors: FieldErrors, entryId: string): FieldErrors {
  return new Map(
    [...errors].map(([path, message]) => {
      const key = path.replace(/^config\./, '');
      return [key.startsWith(`${entryId}.`) ? key : `${entryId}.${key}`, message];
    }),
  );
}
