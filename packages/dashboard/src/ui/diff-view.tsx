import { t } from '../language.ts';
import { type ReactNode, useState } from 'react';
import { count, plural } from '../data/format.ts';
import type { DiffLine, Hunk } from './diff.ts';
import { Button } from './parts.tsx';

/** Lines rendered at once: more would block the page. */
const pageLines = 600;
const signs = { same: ' ', added: '+', removed: '-' } as const;
const lineLabels = { same: undefined, added: 'added', removed: 'removed' } as const;

/** Renders the hunks of a diff; a sign before each line carries the meaning without colours. */
export function DiffView({ hunks, label }: { readonly hunks: readonly Hunk[]; readonly label: string }) {
  const lines = hunks.flatMap((hunk, at): readonly (DiffLine | undefined)[] => (at === 0 ? hunk : [undefined, ...hunk]));
  const added = lines.filter((line) => line?.kind === 'added').length;
  const removed = lines.filter((line) => line?.kind === 'removed').length;
  return (
    <Lines label={label} total={lines.length} lead={t('{lines} added, {removed} removed', { lines: plural(added, 'line'), removed: count(removed) })}>
      {(limit) =>
        lines.slice(0, limit).map((line, key) =>
          line === undefined ? (
            <div key={key} className="diff-line gap">
              …
            </div>
          ) : (
            <div key={key} className={`diff-line ${line.kind}`}>
              <span className="diff-number" aria-hidden="true">
                {line.after ?? line.before}
              </span>
              <span aria-hidden="true">{signs[line.kind]}</span>
              <span className="diff-text">
                {lineLabels[line.kind] !== undefined && <span className="visually-hidden">{`${lineLabels[line.kind]}: `}</span>}
                {line.text}
              </span>
            </div>
          ),
        )
      }
    </Lines>
  );
}

/** Renders the output of `git diff`, coloured by the first character of each line. */
export function GitDiffView({ text, label }: { readonly text: string; readonly label: string }) {
  const lines = text.replace(/\n$/, '').split('\n');
  return (
    <Lines label={label} total={lines.length}>
      {(limit) =>
        lines.slice(0, limit).map((line, key) => (
          <div key={key} className={`diff-line ${kindOf(line)}`}>
            <span className="diff-text">{line}</span>
          </div>
        ))
      }
    </Lines>
  );
}

/** Renders a long text, its lines in parts. */
export function TextView({ text, label }: { readonly text: string; readonly label: string }) {
  const lines = text.replace(/\n$/, '').split('\n');
  return (
    <Lines label={label} total={lines.length}>
      {(limit) =>
        lines.slice(0, limit).map((line, key) => (
          <div key={key} className="diff-line">
            <span className="diff-number" aria-hidden="true">
              {key + 1}
            </span>
            <span className="diff-text">{line}</span>
          </div>
        ))
      }
    </Lines>
  );
}

function kindOf(line: string): string {
  if (/^(diff |index |\+\+\+|---|@@)/.test(line)) return 'gap';
  return line.startsWith('+') ? 'added' : line.startsWith('-') ? 'removed' : 'same';
}

function Lines({
  label,
  total,
  lead,
  children,
}: {
  readonly label: string;
  readonly total: number;
  readonly lead?: string;
  readonly children: (limit: number) => ReactNode;
}) {
  const [limit, setLimit] = useState(pageLines);
  return (
    <div className="diff-whole">
      {lead !== undefined && <p className="hint">{lead}</p>}
      <div className="diff" tabIndex={0} role="region" aria-label={label}>
        {children(limit)}
      </div>
      {total > limit && (
        <Button small onClick={() => setLimit(limit + pageLines)}>
          {t('Show more lines ({total})', { total: count(total - limit) })}
        </Button>
      )}
    </div>
  );
}
