import { TracePage } from './trace-page.tsx';

/** The trace at `/traces/<ref>`. */
export function TracesPage({ rest }: { readonly rest: string | undefined }) {
  return rest === undefined ? null : <TracePage key={rest} reference={rest} />;
}
