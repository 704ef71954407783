import { t } from '../language.ts';
import type { ReactNode } from 'react';
import { PageLink } from './link.tsx';

/** Pages of objects by the form of their ids. */
const pages: readonly (readonly [RegExp, string])[] = [
  [/^cv_[\w-]{43}$/, '/conversations'],
  [/^(?:tn|tr)_[0-9a-f-]{36}(?:\.\d+)?$/, '/traces'],
  [/^[0-9a-f]{32}$/, '/traces'],
  [/^(?:sr_[0-9a-f-]{36}$|root-[\w-]+$)/, '/runs'],
  [/^gr_[0-9a-f-]{36}$/, '/graphs/runs'],
  [/^sg_[0-9a-f-]{36}$/, '/graphs/edit'],
  [/^cj_[\w-]+$/, '/schedule'],
  [/^ap_[0-9a-f-]{36}$/, '/waiting'],
  [/^wd_[0-9a-f-]{36}$/, '/webhooks'],
  [/^ev_[0-9a-f-]{36}$/, '/evals'],
];

/** Returns the page of what an id names; undefined when its form is not known. */
export function pathOf(id: string): string | undefined {
  const page = pages.find(([form]) => form.test(id))?.[1];
  return page === undefined ? undefined : `${page}/${id}`;
}

/** Objects that have pages, by the names under which events and log lines carry their ids; the closest is first. */
const named: readonly (readonly [string, string])[] = [
  ['approvalId', 'approval'],
  ['deliveryId', 'webhook'],
  ['runId', 'run'],
  ['graphId', 'graph'],
  ['jobId', 'job'],
  ['evalId', 'evaluation'],
];

/** Returns the object that an event or a log line is about, by the ids in it. */
export function objectOf(value: unknown): { readonly name: string; readonly path: string } | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [key, name] of named) {
    const id: unknown = Object.getOwnPropertyDescriptor(value, key)?.value;
    const path = typeof id === 'string' ? pathOf(id) : undefined;
    if (path !== undefined) return { name, path };
  }
  return undefined;
}

/** Shows an id as a link to its object. */
export function ObjectLink({ id, children }: { readonly id: string; readonly children?: ReactNode }) {
  const path = pathOf(id);
  if (path === undefined) return <span className="mono">{children ?? id}</span>;
  return (
    <PageLink to={path} className="mono">
      {children ?? id}
    </PageLink>
  );
}

/** A link to a trace: `reference` is the id of a turn, a root run or a trace, `within` names one of its runs. */
export function TraceLink({
  reference,
  within,
  className,
  label,
}: {
  readonly reference: string;
  readonly within?: string;
  readonly className?: string;
  readonly label?: string;
}) {
  const path = [reference, ...(within === undefined ? [] : [within])].map(encodeURIComponent).join('/');
  return (
    <PageLink to={`/traces/${path}`} {...(className !== undefined && { className })} {...(label !== undefined && { label })}>
      {t('Trace')}
    </PageLink>
  );
}

/** A link to the list of the traces that meet a condition of `obs.trace.search`. */
export function FailedTraces({ where, label }: { readonly where: string; readonly label: string }) {
  return (
    <PageLink to={`/traces/where/${encodeURIComponent(where)}`} label={label}>
      {t('Failed turns')}
    </PageLink>
  );
}
