/** A wall time in milliseconds: the epoch time of the same digits in UTC. */
export type WallMs = number;

/** The latest and, negated, the earliest valid date. */
export const lastEpochMs = 8_640_000_000_000_000;
const maxZoneLength = 128;

/** Returns the system's spelling of a zone, or undefined. Accepts an IANA name in any case, or an offset such as `+05:45`. */
export function zoneName(zone: string): string | undefined {
  // Temporal would also accept a full date with a zone.
  if (zone.length > maxZoneLength || !/^(?:[A-Za-z][\w+/-]*|[+-]\d\d:?\d\d)$/.test(zone)) return undefined;
  try {
    return Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO(zone).timeZoneId;
  } catch {
    return undefined;
  }
}

/** Returns the wall time at an instant. */
export function wallAt(epochMs: number, zone: string): WallMs {
  return epochMs + offsetMs(Temporal.Instant.fromEpochMilliseconds(epochMs).toZonedDateTimeISO(zone));
}

/** Returns the instants at which a clock shows `wallMs`: none in a gap, two in a fold. */
export function instantsOf(wallMs: WallMs, zone: string): { readonly earlier: number; readonly later: number; readonly exists: boolean } {
  const plain = Temporal.Instant.fromEpochMilliseconds(wallMs).toZonedDateTimeISO('UTC').toPlainDateTime();
  const earlier = plain.toZonedDateTime(zone, { disambiguation: 'earlier' });
  const later = plain.toZonedDateTime(zone, { disambiguation: 'later' });
  return { earlier: earlier.epochMilliseconds, later: later.epochMilliseconds, exists: earlier.toPlainDateTime().equals(plain) };
}

/** Returns the next instant after `epochMs` at which the zone's offset changes. */
export function nextTransition(epochMs: number, zone: string): number | undefined {
  return Temporal.Instant.fromEpochMilliseconds(epochMs).toZonedDateTimeISO(zone).getTimeZoneTransition('next')?.epochMilliseconds;
}

function offsetMs(at: Temporal.ZonedDateTime): number {
  return at.offsetNanoseconds / 1_000_000;
}
