import { TraceList } from './trace-list.tsx';
import { TracePage } from './trace-page.tsx';

/** The list at `/traces`, the trace at `/traces/<ref>`, with the record that `/traces/<ref>/<id>` names, such as a run of a graph. */
export function TracesPage({ rest }: { readonly rest: string | undefined }) {
  const [reference, within] = rest?.split('/') ?? [];
  return reference === undefined ? <TraceList /> : <TracePage key={rest} reference={reference} within={within} />;
}
