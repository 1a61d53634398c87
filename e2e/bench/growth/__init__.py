"""How do the extender's costs grow with the cluster? In one process, without a control plane.

Where nothing else is said, a time is the thread's CPU time: nothing here waits for anything but itself, and what else
the machine does meanwhile would bend the exponents.
"""
