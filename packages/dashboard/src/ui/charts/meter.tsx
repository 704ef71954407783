import { useId } from 'react';

/**
 * Shows the used and reserved share of a limit, with a mark at the warning threshold. `text` says the same for screen
 * readers; values are in the unit of the limit.
 */
export function Meter({
  label,
  used,
  reserved = 0,
  limit,
  warnAt,
  text,
}: {
  readonly label: string;
  readonly used: number;
  readonly reserved?: number;
  readonly limit: number;
  /** Warning threshold as a share of the limit, from 0 to 1. */
  readonly warnAt: number;
  readonly text: string;
}) {
  const id = useId();
  const part = (value: number): number => (limit <= 0 ? 100 : Math.min(100, (value / limit) * 100));
  const tone = used + reserved >= limit ? 'bad' : used + reserved >= limit * warnAt ? 'warn' : 'good';
  return (
    <div className="meter">
      <p id={id}>
        <span className="meter-label">{label}</span> <span className="hint">{text}</span>
      </p>
      <div
        role="meter"
        aria-labelledby={id}
        aria-valuemin={0}
        aria-valuemax={limit}
        aria-valuenow={Math.min(limit, used + reserved)}
        aria-valuetext={text}
      >
        <svg className={`meter-bar ${tone}`} viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
          <rect className="share-room" width="100" height="10" />
          <rect className="meter-reserved" width={part(used + reserved)} height="10" />
          <rect className="meter-used" width={part(used)} height="10" />
          <line className="meter-mark" x1={warnAt * 100} x2={warnAt * 100} y1="0" y2="10" />
        </svg>
      </div>
    </div>
  );
}
