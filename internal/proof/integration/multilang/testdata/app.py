"""A record processor of amazon_kclpy 1, which writes each record to the file of its process."""
import os

from amazon_kclpy import kcl


class Processor(kcl.RecordProcessorBase):
    def initialize(self, shard_id):
        self.output = open(os.path.join(os.environ["OUTPUT"], str(os.getpid())), "a")

    def process_records(self, records, checkpointer):
        for r in records:
            text = "Record (Partition Key: %s, Sequence Number: %s, Sub"
            self.output.write(text % (r["partitionKey"], r["sequenceNumber"]))
        self.output.flush()
        checkpointer.checkpoint()

    def shutdown(self, checkpointer, reason):
        if reason == "TERMINATE":
            checkpointer.checkpoint()


kcl.KCLProcess(Processor()).run()
