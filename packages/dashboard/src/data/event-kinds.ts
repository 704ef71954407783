// Made by tools/gen.ts from the contract.
import type { EventKind } from '@gatehouse/contract';

/** Every kind of event with the category that it is listed under. */
export const eventKinds: readonly { readonly kind: EventKind; readonly category: string }[] = [
  { kind: 'message:received', category: 'Messages' },
  { kind: 'message:sent', category: 'Messages' },
  { kind: 'message:streaming', category: 'Messages' },
  { kind: 'session:created', category: 'Sessions' },
  { kind: 'session:expired', category: 'Sessions' },
  { kind: 'audit:event', category: 'Security' },
  { kind: 'security:injection_detected', category: 'Security' },
  { kind: 'security:memory_tainted', category: 'Security' },
  { kind: 'security:injection_rate_exceeded', category: 'Security' },
  { kind: 'security:warn', category: 'Security' },
  { kind: 'observability:metrics', category: 'Observability' },
  { kind: 'observability:token_usage', category: 'Observability' },
  { kind: 'learning:memory_demoted', category: 'Learning' },
  { kind: 'learning:memory_evicted', category: 'Learning' },
  { kind: 'learning:lifecycle_swept', category: 'Learning' },
  { kind: 'learning:memory_failure_attributed', category: 'Learning' },
  { kind: 'reflect:admitted', category: 'Learning' },
  { kind: 'reflect:funnel', category: 'Learning' },
  { kind: 'diagnostic:billing_snapshot', category: 'Diagnostics' },
  { kind: 'model:catalog_loaded', category: 'Models' },
  { kind: 'model:fallback_attempt', category: 'Models' },
  { kind: 'model:fallback_exhausted', category: 'Models' },
  { kind: 'model:auth_cooldown', category: 'Models' },
  { kind: 'provider:degraded', category: 'Providers' },
  { kind: 'provider:recovered', category: 'Providers' },
  { kind: 'agent:hot_added', category: 'Agents' },
  { kind: 'agent:hot_removed', category: 'Agents' },
  { kind: 'system:error', category: 'System' },
];
