/** A long name of a run or a host that breaks after its slashes, dots and dashes rather than anywhere. */
import { Fragment, type VNode } from 'preact';

export function Breakable({ name }: { name: string }): VNode {
  const parts = name.split(/(?<=[/._-])/);
  return (
    <>
      {parts.map((part, i) => (
        <Fragment key={i}>
          {i > 0 && <wbr />}
          {part}
        </Fragment>
      ))}
    </>
  );
}
