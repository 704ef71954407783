import { Notice } from '../../ui/parts.tsx';
import type { Problems } from './problems.ts';

/** Lists errors and warnings of a node. */
export function Findings({ errors, warnings }: Problems) {
  if (errors.size === 0 && warnings.length === 0) return null;
  return (
    <div role="status" className="findings">
      {errors.size > 0 && (
        <Notice tone="bad">
          <ul>
            {[...errors].map(([path, message]) => (
              <li key={path}>{path === '' ? message : `${path}: ${message}`}</li>
            ))}
          </ul>
        </Notice>
      )}
      {warnings.length > 0 && (
        <Notice tone="warn">
          <ul>
            {warnings.map(({ type, message, fix }) => (
              <li key={`${type} ${message}`}>{`${message} ${fix}`}</li>
            ))}
          </ul>
        </Notice>
      )}
    </div>
  );
}
