import { tx } from '../language.ts';
import type { ReactNode } from 'react';
import { ObjectLink, pathOf } from './object-link.tsx';

const openDepth = 2;
const maxEntries = 200;

/** Shows a value as a collapsible tree; strings are always plain text. */
export function JsonTree({ value, name, depth = 0 }: { readonly value: unknown; readonly name?: string; readonly depth?: number }): ReactNode {
  const label = name === undefined ? null : <span className="json-key">{name}: </span>;
  if (typeof value !== 'object' || value === null) {
    return (
      <div className="json-leaf">
        {label}
        {typeof value === 'string' && pathOf(value) !== undefined ? (
          <ObjectLink id={value} />
        ) : (
          <span className={`json-${value === null ? 'null' : typeof value}`}>
            {typeof value === 'string' ? JSON.stringify(value) : String(value)}
          </span>
        )}
      </div>
    );
  }
  const entries = Object.entries(value);
  const brackets = Array.isArray(value) ? `[${entries.length}]` : `{${entries.length}}`;
  if (entries.length === 0) {
    return (
      <div className="json-leaf">
        {label}
        <span className="json-null">{Array.isArray(value) ? '[]' : '{}'}</span>
      </div>
    );
  }
  return (
    <details className="json-node" open={depth < openDepth}>
      <summary>
        {label}
        <span className="json-size">{brackets}</span>
      </summary>
      {entries.slice(0, maxEntries).map(([key, one]) => (
        <JsonTree key={key} name={key} value={one} depth={depth + 1} />
      ))}
      {entries.length > maxEntries && <div className="json-leaf hint">{tx('… {entries} more', { entries: entries.length - maxEntries })}</div>}
    </details>
  );
}
