import type { EventPayload } from '@gatehouse/contract';
import type { Clock } from '../kernel/clock.ts';
import type { EventBus } from '../kernel/event-bus.ts';
import { detectInjection, type InjectionFinding } from './injection.ts';

type Detected = EventPayload<'security:injection_detected'>;

export interface InspectedText {
  readonly source: Detected['source'];
  /** Key under which suspicious texts are counted together: a token, or a tool for external text. */
  readonly principalId: string;
  readonly agentId?: string;
  readonly conversationRef?: string;
  readonly traceId?: string;
}

export interface InjectionMonitor {
  /** Inspects a text and announces findings; never changes or refuses it. */
  inspect(text: string, about: InspectedText): InjectionFinding | undefined;
}

export interface InjectionMonitorOptions {
  readonly bus: EventBus;
  readonly clock: Clock;
  /** Suspicious texts of one principal within `windowMs` that are announced as a rate. */
  readonly threshold?: number;
  readonly windowMs?: number;
  /** Maximum number of remembered principals; the ones longest without a finding are forgotten first. */
  readonly maxPrincipals?: number;
}

/** Emits `security:injection_detected` for each finding and `security:injection_rate_exceeded` once per window and principal. */
export function createInjectionMonitor(options: InjectionMonitorOptions): InjectionMonitor {
  const { bus, clock, threshold = 5, windowMs = 300_000, maxPrincipals = 10_000 } = options;
  const recent = new Map<string, { times: number[]; announcedAt: number }>();

  function count(principalId: string, now: number): void {
    const entry = recent.get(principalId) ?? { times: [], announcedAt: Number.NEGATIVE_INFINITY };
    // Re-inserting keeps the map in order of use.
    recent.delete(principalId);
    recent.set(principalId, entry);
    if (recent.size > maxPrincipals) {
      for (const oldest of recent.keys()) {
        recent.delete(oldest);
        break;
      }
    }
    entry.times = [...entry.times.filter((time) => now - time < windowMs), now].slice(-threshold);
    if (entry.times.length < threshold || now - entry.announcedAt < windowMs) return;
    entry.announcedAt = now;
    bus.emit('security:injection_rate_exceeded', { principalId, count: entry.times.length, threshold, windowMs, action: 'warn', timestamp: now });
  }

  return {
    inspect(text, { source, principalId, ...about }) {
      const finding = detectInjection(text);
      if (finding === undefined) return undefined;
      const now = clock.now();
      bus.emit('security:injection_detected', { source, patterns: [...finding.patterns], riskLevel: finding.riskLevel, ...about, timestamp: now });
      count(principalId, now);
      return finding;
    },
  };
}
