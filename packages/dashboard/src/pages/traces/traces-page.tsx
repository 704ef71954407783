import { TraceList } from './trace-list.tsx';
import { TracePage } from './trace-page.tsx';

/** The list at `/traces`, with the condition of `/traces/where/<condition>`; the trace at `/traces/<ref>`, with the record that `/traces/<ref>/<id>` names, such as a run of a graph. */
export function TracesPage({ rest }: { readonly rest: string | undefined }) {
  const [reference, within, ...more] = rest?.split('/') ?? [];
  if (reference === 'where') return <TraceList key={rest} initialWhere={[within, ...more].join('/')} />;
  return reference === undefined ? <TraceList initialWhere="" /> : <TracePage key={rest} reference={reference} within={within} />;
}
