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
  [/^ap_[0-9a-f-]{36}$/, '/approvals'],
  [/^wd_[0-9a-f-]{36}$/, '/webhooks'],
];

/** Returns the page of what an id names; undefined when its form is not known. */
export function pathOf(id: string): string | undefined {
  const page = pages.find(([form]) => form.test(id))?.[1];
  return page === undefined ? undefined : `${page}/${id}`;
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

/** A link to the trace of a turn, a run or a job; `reference` is the id of any of them, or of the trace. */
export function TraceLink({ reference, className, label }: { readonly reference: string; readonly className?: string; readonly label?: string }) {
  return (
    <PageLink to={`/traces/${encodeURIComponent(reference)}`} {...(className !== undefined && { className })} {...(label !== undefined && { label })}>
      Trace
    </PageLink>
  );
}
