package io.fila.v1;

import static io.grpc.MethodDescriptor.generateFullMethodName;

/**
 */
@io.grpc.stub.annotations.GrpcGenerated
public final class FilaServiceGrpc {

  private FilaServiceGrpc() {}

  public static final java.lang.String SERVICE_NAME = "fila.v1.FilaService";

  // Static method descriptors that strictly reflect the proto.
  private static volatile io.grpc.MethodDescriptor<io.fila.v1.DescribeRequest,
      io.fila.v1.DescribeResponse> getDescribeMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Describe",
      requestType = io.fila.v1.DescribeRequest.class,
      responseType = io.fila.v1.DescribeResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<io.fila.v1.DescribeRequest,
      io.fila.v1.DescribeResponse> getDescribeMethod() {
    io.grpc.MethodDescriptor<io.fila.v1.DescribeRequest, io.fila.v1.DescribeResponse> getDescribeMethod;
    if ((getDescribeMethod = FilaServiceGrpc.getDescribeMethod) == null) {
      synchronized (FilaServiceGrpc.class) {
        if ((getDescribeMethod = FilaServiceGrpc.getDescribeMethod) == null) {
          FilaServiceGrpc.getDescribeMethod = getDescribeMethod =
              io.grpc.MethodDescriptor.<io.fila.v1.DescribeRequest, io.fila.v1.DescribeResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Describe"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.DescribeRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.DescribeResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaServiceMethodDescriptorSupplier("Describe"))
              .build();
        }
      }
    }
    return getDescribeMethod;
  }

  private static volatile io.grpc.MethodDescriptor<io.fila.v1.GetClusterMapRequest,
      io.fila.v1.GetClusterMapResponse> getGetClusterMapMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "GetClusterMap",
      requestType = io.fila.v1.GetClusterMapRequest.class,
      responseType = io.fila.v1.GetClusterMapResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<io.fila.v1.GetClusterMapRequest,
      io.fila.v1.GetClusterMapResponse> getGetClusterMapMethod() {
    io.grpc.MethodDescriptor<io.fila.v1.GetClusterMapRequest, io.fila.v1.GetClusterMapResponse> getGetClusterMapMethod;
    if ((getGetClusterMapMethod = FilaServiceGrpc.getGetClusterMapMethod) == null) {
      synchronized (FilaServiceGrpc.class) {
        if ((getGetClusterMapMethod = FilaServiceGrpc.getGetClusterMapMethod) == null) {
          FilaServiceGrpc.getGetClusterMapMethod = getGetClusterMapMethod =
              io.grpc.MethodDescriptor.<io.fila.v1.GetClusterMapRequest, io.fila.v1.GetClusterMapResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "GetClusterMap"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.GetClusterMapRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.GetClusterMapResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaServiceMethodDescriptorSupplier("GetClusterMap"))
              .build();
        }
      }
    }
    return getGetClusterMapMethod;
  }

  private static volatile io.grpc.MethodDescriptor<io.fila.v1.EnqueueRequest,
      io.fila.v1.EnqueueResponse> getEnqueueMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Enqueue",
      requestType = io.fila.v1.EnqueueRequest.class,
      responseType = io.fila.v1.EnqueueResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<io.fila.v1.EnqueueRequest,
      io.fila.v1.EnqueueResponse> getEnqueueMethod() {
    io.grpc.MethodDescriptor<io.fila.v1.EnqueueRequest, io.fila.v1.EnqueueResponse> getEnqueueMethod;
    if ((getEnqueueMethod = FilaServiceGrpc.getEnqueueMethod) == null) {
      synchronized (FilaServiceGrpc.class) {
        if ((getEnqueueMethod = FilaServiceGrpc.getEnqueueMethod) == null) {
          FilaServiceGrpc.getEnqueueMethod = getEnqueueMethod =
              io.grpc.MethodDescriptor.<io.fila.v1.EnqueueRequest, io.fila.v1.EnqueueResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Enqueue"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.EnqueueRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.EnqueueResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaServiceMethodDescriptorSupplier("Enqueue"))
              .build();
        }
      }
    }
    return getEnqueueMethod;
  }

  private static volatile io.grpc.MethodDescriptor<io.fila.v1.EnqueueBatchRequest,
      io.fila.v1.EnqueueBatchResponse> getEnqueueBatchMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "EnqueueBatch",
      requestType = io.fila.v1.EnqueueBatchRequest.class,
      responseType = io.fila.v1.EnqueueBatchResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<io.fila.v1.EnqueueBatchRequest,
      io.fila.v1.EnqueueBatchResponse> getEnqueueBatchMethod() {
    io.grpc.MethodDescriptor<io.fila.v1.EnqueueBatchRequest, io.fila.v1.EnqueueBatchResponse> getEnqueueBatchMethod;
    if ((getEnqueueBatchMethod = FilaServiceGrpc.getEnqueueBatchMethod) == null) {
      synchronized (FilaServiceGrpc.class) {
        if ((getEnqueueBatchMethod = FilaServiceGrpc.getEnqueueBatchMethod) == null) {
          FilaServiceGrpc.getEnqueueBatchMethod = getEnqueueBatchMethod =
              io.grpc.MethodDescriptor.<io.fila.v1.EnqueueBatchRequest, io.fila.v1.EnqueueBatchResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "EnqueueBatch"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.EnqueueBatchRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.EnqueueBatchResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaServiceMethodDescriptorSupplier("EnqueueBatch"))
              .build();
        }
      }
    }
    return getEnqueueBatchMethod;
  }

  private static volatile io.grpc.MethodDescriptor<io.fila.v1.EnqueueBatchRequest,
      io.fila.v1.EnqueueBatchResponse> getEnqueueStreamMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "EnqueueStream",
      requestType = io.fila.v1.EnqueueBatchRequest.class,
      responseType = io.fila.v1.EnqueueBatchResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.BIDI_STREAMING)
  public static io.grpc.MethodDescriptor<io.fila.v1.EnqueueBatchRequest,
      io.fila.v1.EnqueueBatchResponse> getEnqueueStreamMethod() {
    io.grpc.MethodDescriptor<io.fila.v1.EnqueueBatchRequest, io.fila.v1.EnqueueBatchResponse> getEnqueueStreamMethod;
    if ((getEnqueueStreamMethod = FilaServiceGrpc.getEnqueueStreamMethod) == null) {
      synchronized (FilaServiceGrpc.class) {
        if ((getEnqueueStreamMethod = FilaServiceGrpc.getEnqueueStreamMethod) == null) {
          FilaServiceGrpc.getEnqueueStreamMethod = getEnqueueStreamMethod =
              io.grpc.MethodDescriptor.<io.fila.v1.EnqueueBatchRequest, io.fila.v1.EnqueueBatchResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.BIDI_STREAMING)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "EnqueueStream"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.EnqueueBatchRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.EnqueueBatchResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaServiceMethodDescriptorSupplier("EnqueueStream"))
              .build();
        }
      }
    }
    return getEnqueueStreamMethod;
  }

  private static volatile io.grpc.MethodDescriptor<io.fila.v1.LeaseRequest,
      io.fila.v1.LeaseResponse> getLeaseMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Lease",
      requestType = io.fila.v1.LeaseRequest.class,
      responseType = io.fila.v1.LeaseResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.SERVER_STREAMING)
  public static io.grpc.MethodDescriptor<io.fila.v1.LeaseRequest,
      io.fila.v1.LeaseResponse> getLeaseMethod() {
    io.grpc.MethodDescriptor<io.fila.v1.LeaseRequest, io.fila.v1.LeaseResponse> getLeaseMethod;
    if ((getLeaseMethod = FilaServiceGrpc.getLeaseMethod) == null) {
      synchronized (FilaServiceGrpc.class) {
        if ((getLeaseMethod = FilaServiceGrpc.getLeaseMethod) == null) {
          FilaServiceGrpc.getLeaseMethod = getLeaseMethod =
              io.grpc.MethodDescriptor.<io.fila.v1.LeaseRequest, io.fila.v1.LeaseResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.SERVER_STREAMING)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Lease"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.LeaseRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.LeaseResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaServiceMethodDescriptorSupplier("Lease"))
              .build();
        }
      }
    }
    return getLeaseMethod;
  }

  private static volatile io.grpc.MethodDescriptor<io.fila.v1.ConsumeRequest,
      io.fila.v1.ConsumeResponse> getConsumeMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Consume",
      requestType = io.fila.v1.ConsumeRequest.class,
      responseType = io.fila.v1.ConsumeResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.BIDI_STREAMING)
  public static io.grpc.MethodDescriptor<io.fila.v1.ConsumeRequest,
      io.fila.v1.ConsumeResponse> getConsumeMethod() {
    io.grpc.MethodDescriptor<io.fila.v1.ConsumeRequest, io.fila.v1.ConsumeResponse> getConsumeMethod;
    if ((getConsumeMethod = FilaServiceGrpc.getConsumeMethod) == null) {
      synchronized (FilaServiceGrpc.class) {
        if ((getConsumeMethod = FilaServiceGrpc.getConsumeMethod) == null) {
          FilaServiceGrpc.getConsumeMethod = getConsumeMethod =
              io.grpc.MethodDescriptor.<io.fila.v1.ConsumeRequest, io.fila.v1.ConsumeResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.BIDI_STREAMING)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Consume"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.ConsumeRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.ConsumeResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaServiceMethodDescriptorSupplier("Consume"))
              .build();
        }
      }
    }
    return getConsumeMethod;
  }

  private static volatile io.grpc.MethodDescriptor<io.fila.v1.AckRequest,
      io.fila.v1.AckResponse> getAckMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Ack",
      requestType = io.fila.v1.AckRequest.class,
      responseType = io.fila.v1.AckResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<io.fila.v1.AckRequest,
      io.fila.v1.AckResponse> getAckMethod() {
    io.grpc.MethodDescriptor<io.fila.v1.AckRequest, io.fila.v1.AckResponse> getAckMethod;
    if ((getAckMethod = FilaServiceGrpc.getAckMethod) == null) {
      synchronized (FilaServiceGrpc.class) {
        if ((getAckMethod = FilaServiceGrpc.getAckMethod) == null) {
          FilaServiceGrpc.getAckMethod = getAckMethod =
              io.grpc.MethodDescriptor.<io.fila.v1.AckRequest, io.fila.v1.AckResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Ack"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.AckRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.AckResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaServiceMethodDescriptorSupplier("Ack"))
              .build();
        }
      }
    }
    return getAckMethod;
  }

  private static volatile io.grpc.MethodDescriptor<io.fila.v1.NackRequest,
      io.fila.v1.NackResponse> getNackMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Nack",
      requestType = io.fila.v1.NackRequest.class,
      responseType = io.fila.v1.NackResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<io.fila.v1.NackRequest,
      io.fila.v1.NackResponse> getNackMethod() {
    io.grpc.MethodDescriptor<io.fila.v1.NackRequest, io.fila.v1.NackResponse> getNackMethod;
    if ((getNackMethod = FilaServiceGrpc.getNackMethod) == null) {
      synchronized (FilaServiceGrpc.class) {
        if ((getNackMethod = FilaServiceGrpc.getNackMethod) == null) {
          FilaServiceGrpc.getNackMethod = getNackMethod =
              io.grpc.MethodDescriptor.<io.fila.v1.NackRequest, io.fila.v1.NackResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Nack"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.NackRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.NackResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaServiceMethodDescriptorSupplier("Nack"))
              .build();
        }
      }
    }
    return getNackMethod;
  }

  private static volatile io.grpc.MethodDescriptor<io.fila.v1.ExtendLeaseRequest,
      io.fila.v1.ExtendLeaseResponse> getExtendLeaseMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ExtendLease",
      requestType = io.fila.v1.ExtendLeaseRequest.class,
      responseType = io.fila.v1.ExtendLeaseResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<io.fila.v1.ExtendLeaseRequest,
      io.fila.v1.ExtendLeaseResponse> getExtendLeaseMethod() {
    io.grpc.MethodDescriptor<io.fila.v1.ExtendLeaseRequest, io.fila.v1.ExtendLeaseResponse> getExtendLeaseMethod;
    if ((getExtendLeaseMethod = FilaServiceGrpc.getExtendLeaseMethod) == null) {
      synchronized (FilaServiceGrpc.class) {
        if ((getExtendLeaseMethod = FilaServiceGrpc.getExtendLeaseMethod) == null) {
          FilaServiceGrpc.getExtendLeaseMethod = getExtendLeaseMethod =
              io.grpc.MethodDescriptor.<io.fila.v1.ExtendLeaseRequest, io.fila.v1.ExtendLeaseResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ExtendLease"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.ExtendLeaseRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.ExtendLeaseResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaServiceMethodDescriptorSupplier("ExtendLease"))
              .build();
        }
      }
    }
    return getExtendLeaseMethod;
  }

  private static volatile io.grpc.MethodDescriptor<io.fila.v1.SettleRequest,
      io.fila.v1.SettleResponse> getSettleMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Settle",
      requestType = io.fila.v1.SettleRequest.class,
      responseType = io.fila.v1.SettleResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.BIDI_STREAMING)
  public static io.grpc.MethodDescriptor<io.fila.v1.SettleRequest,
      io.fila.v1.SettleResponse> getSettleMethod() {
    io.grpc.MethodDescriptor<io.fila.v1.SettleRequest, io.fila.v1.SettleResponse> getSettleMethod;
    if ((getSettleMethod = FilaServiceGrpc.getSettleMethod) == null) {
      synchronized (FilaServiceGrpc.class) {
        if ((getSettleMethod = FilaServiceGrpc.getSettleMethod) == null) {
          FilaServiceGrpc.getSettleMethod = getSettleMethod =
              io.grpc.MethodDescriptor.<io.fila.v1.SettleRequest, io.fila.v1.SettleResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.BIDI_STREAMING)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Settle"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.SettleRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.SettleResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaServiceMethodDescriptorSupplier("Settle"))
              .build();
        }
      }
    }
    return getSettleMethod;
  }

  private static volatile io.grpc.MethodDescriptor<io.fila.v1.ClaimRequest,
      io.fila.v1.ClaimResponse> getClaimMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Claim",
      requestType = io.fila.v1.ClaimRequest.class,
      responseType = io.fila.v1.ClaimResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<io.fila.v1.ClaimRequest,
      io.fila.v1.ClaimResponse> getClaimMethod() {
    io.grpc.MethodDescriptor<io.fila.v1.ClaimRequest, io.fila.v1.ClaimResponse> getClaimMethod;
    if ((getClaimMethod = FilaServiceGrpc.getClaimMethod) == null) {
      synchronized (FilaServiceGrpc.class) {
        if ((getClaimMethod = FilaServiceGrpc.getClaimMethod) == null) {
          FilaServiceGrpc.getClaimMethod = getClaimMethod =
              io.grpc.MethodDescriptor.<io.fila.v1.ClaimRequest, io.fila.v1.ClaimResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Claim"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.ClaimRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.ClaimResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaServiceMethodDescriptorSupplier("Claim"))
              .build();
        }
      }
    }
    return getClaimMethod;
  }

  private static volatile io.grpc.MethodDescriptor<io.fila.v1.DescribeClaimRequest,
      io.fila.v1.DescribeClaimResponse> getDescribeClaimMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "DescribeClaim",
      requestType = io.fila.v1.DescribeClaimRequest.class,
      responseType = io.fila.v1.DescribeClaimResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<io.fila.v1.DescribeClaimRequest,
      io.fila.v1.DescribeClaimResponse> getDescribeClaimMethod() {
    io.grpc.MethodDescriptor<io.fila.v1.DescribeClaimRequest, io.fila.v1.DescribeClaimResponse> getDescribeClaimMethod;
    if ((getDescribeClaimMethod = FilaServiceGrpc.getDescribeClaimMethod) == null) {
      synchronized (FilaServiceGrpc.class) {
        if ((getDescribeClaimMethod = FilaServiceGrpc.getDescribeClaimMethod) == null) {
          FilaServiceGrpc.getDescribeClaimMethod = getDescribeClaimMethod =
              io.grpc.MethodDescriptor.<io.fila.v1.DescribeClaimRequest, io.fila.v1.DescribeClaimResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "DescribeClaim"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.DescribeClaimRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.DescribeClaimResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaServiceMethodDescriptorSupplier("DescribeClaim"))
              .build();
        }
      }
    }
    return getDescribeClaimMethod;
  }

  private static volatile io.grpc.MethodDescriptor<io.fila.v1.ReadClaimRequest,
      io.fila.v1.ReadClaimResponse> getReadClaimMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ReadClaim",
      requestType = io.fila.v1.ReadClaimRequest.class,
      responseType = io.fila.v1.ReadClaimResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.SERVER_STREAMING)
  public static io.grpc.MethodDescriptor<io.fila.v1.ReadClaimRequest,
      io.fila.v1.ReadClaimResponse> getReadClaimMethod() {
    io.grpc.MethodDescriptor<io.fila.v1.ReadClaimRequest, io.fila.v1.ReadClaimResponse> getReadClaimMethod;
    if ((getReadClaimMethod = FilaServiceGrpc.getReadClaimMethod) == null) {
      synchronized (FilaServiceGrpc.class) {
        if ((getReadClaimMethod = FilaServiceGrpc.getReadClaimMethod) == null) {
          FilaServiceGrpc.getReadClaimMethod = getReadClaimMethod =
              io.grpc.MethodDescriptor.<io.fila.v1.ReadClaimRequest, io.fila.v1.ReadClaimResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.SERVER_STREAMING)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ReadClaim"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.ReadClaimRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.ReadClaimResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaServiceMethodDescriptorSupplier("ReadClaim"))
              .build();
        }
      }
    }
    return getReadClaimMethod;
  }

  private static volatile io.grpc.MethodDescriptor<io.fila.v1.AckClaimsRequest,
      io.fila.v1.AckClaimsResponse> getAckClaimsMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "AckClaims",
      requestType = io.fila.v1.AckClaimsRequest.class,
      responseType = io.fila.v1.AckClaimsResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<io.fila.v1.AckClaimsRequest,
      io.fila.v1.AckClaimsResponse> getAckClaimsMethod() {
    io.grpc.MethodDescriptor<io.fila.v1.AckClaimsRequest, io.fila.v1.AckClaimsResponse> getAckClaimsMethod;
    if ((getAckClaimsMethod = FilaServiceGrpc.getAckClaimsMethod) == null) {
      synchronized (FilaServiceGrpc.class) {
        if ((getAckClaimsMethod = FilaServiceGrpc.getAckClaimsMethod) == null) {
          FilaServiceGrpc.getAckClaimsMethod = getAckClaimsMethod =
              io.grpc.MethodDescriptor.<io.fila.v1.AckClaimsRequest, io.fila.v1.AckClaimsResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "AckClaims"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.AckClaimsRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.AckClaimsResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaServiceMethodDescriptorSupplier("AckClaims"))
              .build();
        }
      }
    }
    return getAckClaimsMethod;
  }

  private static volatile io.grpc.MethodDescriptor<io.fila.v1.ExtendClaimsRequest,
      io.fila.v1.ExtendClaimsResponse> getExtendClaimsMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ExtendClaims",
      requestType = io.fila.v1.ExtendClaimsRequest.class,
      responseType = io.fila.v1.ExtendClaimsResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<io.fila.v1.ExtendClaimsRequest,
      io.fila.v1.ExtendClaimsResponse> getExtendClaimsMethod() {
    io.grpc.MethodDescriptor<io.fila.v1.ExtendClaimsRequest, io.fila.v1.ExtendClaimsResponse> getExtendClaimsMethod;
    if ((getExtendClaimsMethod = FilaServiceGrpc.getExtendClaimsMethod) == null) {
      synchronized (FilaServiceGrpc.class) {
        if ((getExtendClaimsMethod = FilaServiceGrpc.getExtendClaimsMethod) == null) {
          FilaServiceGrpc.getExtendClaimsMethod = getExtendClaimsMethod =
              io.grpc.MethodDescriptor.<io.fila.v1.ExtendClaimsRequest, io.fila.v1.ExtendClaimsResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ExtendClaims"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.ExtendClaimsRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.ExtendClaimsResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaServiceMethodDescriptorSupplier("ExtendClaims"))
              .build();
        }
      }
    }
    return getExtendClaimsMethod;
  }

  private static volatile io.grpc.MethodDescriptor<io.fila.v1.ClaimFloorRequest,
      io.fila.v1.ClaimFloorResponse> getClaimFloorMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ClaimFloor",
      requestType = io.fila.v1.ClaimFloorRequest.class,
      responseType = io.fila.v1.ClaimFloorResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<io.fila.v1.ClaimFloorRequest,
      io.fila.v1.ClaimFloorResponse> getClaimFloorMethod() {
    io.grpc.MethodDescriptor<io.fila.v1.ClaimFloorRequest, io.fila.v1.ClaimFloorResponse> getClaimFloorMethod;
    if ((getClaimFloorMethod = FilaServiceGrpc.getClaimFloorMethod) == null) {
      synchronized (FilaServiceGrpc.class) {
        if ((getClaimFloorMethod = FilaServiceGrpc.getClaimFloorMethod) == null) {
          FilaServiceGrpc.getClaimFloorMethod = getClaimFloorMethod =
              io.grpc.MethodDescriptor.<io.fila.v1.ClaimFloorRequest, io.fila.v1.ClaimFloorResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ClaimFloor"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.ClaimFloorRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.ClaimFloorResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaServiceMethodDescriptorSupplier("ClaimFloor"))
              .build();
        }
      }
    }
    return getClaimFloorMethod;
  }

  private static volatile io.grpc.MethodDescriptor<io.fila.v1.DropGroupRequest,
      io.fila.v1.DropGroupResponse> getDropGroupMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "DropGroup",
      requestType = io.fila.v1.DropGroupRequest.class,
      responseType = io.fila.v1.DropGroupResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<io.fila.v1.DropGroupRequest,
      io.fila.v1.DropGroupResponse> getDropGroupMethod() {
    io.grpc.MethodDescriptor<io.fila.v1.DropGroupRequest, io.fila.v1.DropGroupResponse> getDropGroupMethod;
    if ((getDropGroupMethod = FilaServiceGrpc.getDropGroupMethod) == null) {
      synchronized (FilaServiceGrpc.class) {
        if ((getDropGroupMethod = FilaServiceGrpc.getDropGroupMethod) == null) {
          FilaServiceGrpc.getDropGroupMethod = getDropGroupMethod =
              io.grpc.MethodDescriptor.<io.fila.v1.DropGroupRequest, io.fila.v1.DropGroupResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "DropGroup"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.DropGroupRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.DropGroupResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaServiceMethodDescriptorSupplier("DropGroup"))
              .build();
        }
      }
    }
    return getDropGroupMethod;
  }

  private static volatile io.grpc.MethodDescriptor<io.fila.v1.ReadQueueRequest,
      io.fila.v1.ReadQueueResponse> getReadQueueMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ReadQueue",
      requestType = io.fila.v1.ReadQueueRequest.class,
      responseType = io.fila.v1.ReadQueueResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.SERVER_STREAMING)
  public static io.grpc.MethodDescriptor<io.fila.v1.ReadQueueRequest,
      io.fila.v1.ReadQueueResponse> getReadQueueMethod() {
    io.grpc.MethodDescriptor<io.fila.v1.ReadQueueRequest, io.fila.v1.ReadQueueResponse> getReadQueueMethod;
    if ((getReadQueueMethod = FilaServiceGrpc.getReadQueueMethod) == null) {
      synchronized (FilaServiceGrpc.class) {
        if ((getReadQueueMethod = FilaServiceGrpc.getReadQueueMethod) == null) {
          FilaServiceGrpc.getReadQueueMethod = getReadQueueMethod =
              io.grpc.MethodDescriptor.<io.fila.v1.ReadQueueRequest, io.fila.v1.ReadQueueResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.SERVER_STREAMING)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ReadQueue"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.ReadQueueRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.ReadQueueResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaServiceMethodDescriptorSupplier("ReadQueue"))
              .build();
        }
      }
    }
    return getReadQueueMethod;
  }

  private static volatile io.grpc.MethodDescriptor<io.fila.v1.StageEnqueueRequest,
      io.fila.v1.StageEnqueueResponse> getStageEnqueueMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "StageEnqueue",
      requestType = io.fila.v1.StageEnqueueRequest.class,
      responseType = io.fila.v1.StageEnqueueResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<io.fila.v1.StageEnqueueRequest,
      io.fila.v1.StageEnqueueResponse> getStageEnqueueMethod() {
    io.grpc.MethodDescriptor<io.fila.v1.StageEnqueueRequest, io.fila.v1.StageEnqueueResponse> getStageEnqueueMethod;
    if ((getStageEnqueueMethod = FilaServiceGrpc.getStageEnqueueMethod) == null) {
      synchronized (FilaServiceGrpc.class) {
        if ((getStageEnqueueMethod = FilaServiceGrpc.getStageEnqueueMethod) == null) {
          FilaServiceGrpc.getStageEnqueueMethod = getStageEnqueueMethod =
              io.grpc.MethodDescriptor.<io.fila.v1.StageEnqueueRequest, io.fila.v1.StageEnqueueResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "StageEnqueue"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.StageEnqueueRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.StageEnqueueResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaServiceMethodDescriptorSupplier("StageEnqueue"))
              .build();
        }
      }
    }
    return getStageEnqueueMethod;
  }

  private static volatile io.grpc.MethodDescriptor<io.fila.v1.CommitTransactionRequest,
      io.fila.v1.CommitTransactionResponse> getCommitTransactionMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "CommitTransaction",
      requestType = io.fila.v1.CommitTransactionRequest.class,
      responseType = io.fila.v1.CommitTransactionResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<io.fila.v1.CommitTransactionRequest,
      io.fila.v1.CommitTransactionResponse> getCommitTransactionMethod() {
    io.grpc.MethodDescriptor<io.fila.v1.CommitTransactionRequest, io.fila.v1.CommitTransactionResponse> getCommitTransactionMethod;
    if ((getCommitTransactionMethod = FilaServiceGrpc.getCommitTransactionMethod) == null) {
      synchronized (FilaServiceGrpc.class) {
        if ((getCommitTransactionMethod = FilaServiceGrpc.getCommitTransactionMethod) == null) {
          FilaServiceGrpc.getCommitTransactionMethod = getCommitTransactionMethod =
              io.grpc.MethodDescriptor.<io.fila.v1.CommitTransactionRequest, io.fila.v1.CommitTransactionResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "CommitTransaction"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.CommitTransactionRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.CommitTransactionResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaServiceMethodDescriptorSupplier("CommitTransaction"))
              .build();
        }
      }
    }
    return getCommitTransactionMethod;
  }

  /**
   * Creates a new async stub that supports all call types for the service
   */
  public static FilaServiceStub newStub(io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<FilaServiceStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<FilaServiceStub>() {
        @java.lang.Override
        public FilaServiceStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new FilaServiceStub(channel, callOptions);
        }
      };
    return FilaServiceStub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports all types of calls on the service
   */
  public static FilaServiceBlockingV2Stub newBlockingV2Stub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<FilaServiceBlockingV2Stub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<FilaServiceBlockingV2Stub>() {
        @java.lang.Override
        public FilaServiceBlockingV2Stub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new FilaServiceBlockingV2Stub(channel, callOptions);
        }
      };
    return FilaServiceBlockingV2Stub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports unary and streaming output calls on the service
   */
  public static FilaServiceBlockingStub newBlockingStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<FilaServiceBlockingStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<FilaServiceBlockingStub>() {
        @java.lang.Override
        public FilaServiceBlockingStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new FilaServiceBlockingStub(channel, callOptions);
        }
      };
    return FilaServiceBlockingStub.newStub(factory, channel);
  }

  /**
   * Creates a new ListenableFuture-style stub that supports unary calls on the service
   */
  public static FilaServiceFutureStub newFutureStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<FilaServiceFutureStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<FilaServiceFutureStub>() {
        @java.lang.Override
        public FilaServiceFutureStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new FilaServiceFutureStub(channel, callOptions);
        }
      };
    return FilaServiceFutureStub.newStub(factory, channel);
  }

  /**
   */
  public interface AsyncService {

    /**
     * <pre>
     * What this server is: version, features, limits, and how long it remembers. For every caller that has a valid key.
     * </pre>
     */
    default void describe(io.fila.v1.DescribeRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.DescribeResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getDescribeMethod(), responseObserver);
    }

    /**
     * <pre>
     * Who has which queue. A server without a cluster answers a map of one member.
     * Every member takes every call, and passes on what is not its own. Such an answer has the trailers `fila-owner`, the
     * address of the member to ask directly the next time, and `fila-map`, the version of the map. A member that cannot
     * pass a call on refuses it (ERROR_KIND_NOT_OWNER), with the same trailers.
     * </pre>
     */
    default void getClusterMap(io.fila.v1.GetClusterMapRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.GetClusterMapResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getGetClusterMapMethod(), responseObserver);
    }

    /**
     * <pre>
     * Enqueues one message. Answers when the message is durable.
     * </pre>
     */
    default void enqueue(io.fila.v1.EnqueueRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.EnqueueResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getEnqueueMethod(), responseObserver);
    }

    /**
     * <pre>
     * Enqueues a batch. Each message succeeds or fails by itself; those that succeed become durable in one write.
     * </pre>
     */
    default void enqueueBatch(io.fila.v1.EnqueueBatchRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.EnqueueBatchResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getEnqueueBatchMethod(), responseObserver);
    }

    /**
     * <pre>
     * The fast way to produce: many batches in flight, answered in order. Response headers come at once. A batch that is
     * refused is answered with its `error`, and the stream goes on; it ends with UNAVAILABLE or UNAUTHENTICATED when no
     * later batch could succeed on it either.
     * </pre>
     */
    default io.grpc.stub.StreamObserver<io.fila.v1.EnqueueBatchRequest> enqueueStream(
        io.grpc.stub.StreamObserver<io.fila.v1.EnqueueBatchResponse> responseObserver) {
      return io.grpc.stub.ServerCalls.asyncUnimplementedStreamingCall(getEnqueueStreamMethod(), responseObserver);
    }

    /**
     * <pre>
     * Delivers messages while the stream is open, with at most `max_in_flight` unsettled at a time. Closing the stream
     * returns unsettled messages to the queue at once. The initial metadata `fila-visibility-timeout-ms` is the queue's
     * visibility timeout, for clients that extend their leases; a response tells a new one when it has changed.
     * The broker does not know which messages the application was handed, so it counts all delivered messages as handed.
     * With `Consume` it knows.
     * </pre>
     */
    default void lease(io.fila.v1.LeaseRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.LeaseResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getLeaseMethod(), responseObserver);
    }

    /**
     * <pre>
     * As `Lease`, for a client that prefetches and reports which messages its application was handed. Messages that were
     * not handed go back without counting an attempt, however the stream ends. Messages that were handed and not settled
     *   - go back and count an attempt when the caller cancels the call, or when its connection is lost;
     *   - stay leased, until they are settled or their lease ends, when the caller half-closes the stream. The broker
     *     delivers no more and ends the stream with OK: stop, and let the application finish.
     * The caller may change its credit (`max_in_flight`) at any time.
     * </pre>
     */
    default io.grpc.stub.StreamObserver<io.fila.v1.ConsumeRequest> consume(
        io.grpc.stub.StreamObserver<io.fila.v1.ConsumeResponse> responseObserver) {
      return io.grpc.stub.ServerCalls.asyncUnimplementedStreamingCall(getConsumeMethod(), responseObserver);
    }

    /**
     * <pre>
     * Removes a delivered message for good. NOT_FOUND when no such lease is held.
     * </pre>
     */
    default void ack(io.fila.v1.AckRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.AckResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getAckMethod(), responseObserver);
    }

    /**
     * <pre>
     * Returns a delivered message to its queue. NOT_FOUND when no such lease is held.
     * </pre>
     */
    default void nack(io.fila.v1.NackRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.NackResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getNackMethod(), responseObserver);
    }

    /**
     * <pre>
     * Moves the end of a lease. NOT_FOUND when no such lease is held.
     * </pre>
     */
    default void extendLease(io.fila.v1.ExtendLeaseRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.ExtendLeaseResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getExtendLeaseMethod(), responseObserver);
    }

    /**
     * <pre>
     * The fast way to settle: many batches in flight, answered in order. Headers and refusals as in `EnqueueStream`.
     * </pre>
     */
    default io.grpc.stub.StreamObserver<io.fila.v1.SettleRequest> settle(
        io.grpc.stub.StreamObserver<io.fila.v1.SettleResponse> responseObserver) {
      return io.grpc.stub.ServerCalls.asyncUnimplementedStreamingCall(getSettleMethod(), responseObserver);
    }

    /**
     * <pre>
     * Claims, for readers that must be able to read the same messages again, such as stream processors: docs/claims.md.
     * Makes claim `after + 1` of a group: messages chosen in fair order and leased as one. If that claim exists, it is
     * answered again. FAILED_PRECONDITION when it was acked, when claim `after` was never made, or for a lower epoch.
     * </pre>
     */
    default void claim(io.fila.v1.ClaimRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.ClaimResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getClaimMethod(), responseObserver);
    }

    /**
     * <pre>
     * The state of a claim. FAILED_PRECONDITION when it was acked or never made.
     * </pre>
     */
    default void describeClaim(io.fila.v1.DescribeClaimRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.DescribeClaimResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getDescribeClaimMethod(), responseObserver);
    }

    /**
     * <pre>
     * Reads a slice of a claim by position. Until the claim is acked, reading again returns the same messages in the same
     * order. An expired claim is empty. FAILED_PRECONDITION when it was acked or never made, or when it ends during the
     * read.
     * </pre>
     */
    default void readClaim(io.fila.v1.ReadClaimRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.ReadClaimResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getReadClaimMethod(), responseObserver);
    }

    /**
     * <pre>
     * Acks all claims up to a number: their messages are removed for good. Expired claims are not touched.
     * </pre>
     */
    default void ackClaims(io.fila.v1.AckClaimsRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.AckClaimsResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getAckClaimsMethod(), responseObserver);
    }

    /**
     * <pre>
     * The heartbeat: extends all open claims of a group.
     * </pre>
     */
    default void extendClaims(io.fila.v1.ExtendClaimsRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.ExtendClaimsResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getExtendClaimsMethod(), responseObserver);
    }

    /**
     * <pre>
     * The position of a group, and what waits for it. A group that the broker does not know is at 0.
     * </pre>
     */
    default void claimFloor(io.fila.v1.ClaimFloorRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.ClaimFloorResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getClaimFloorMethod(), responseObserver);
    }

    /**
     * <pre>
     * Deletes a group. FAILED_PRECONDITION while it has open claims.
     * </pre>
     */
    default void dropGroup(io.fila.v1.DropGroupRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.DropGroupResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getDropGroupMethod(), responseObserver);
    }

    /**
     * <pre>
     * Reads the messages of a queue, oldest first, without leasing them. Messages that move meanwhile may be missing.
     * </pre>
     */
    default void readQueue(io.fila.v1.ReadQueueRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.ReadQueueResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getReadQueueMethod(), responseObserver);
    }

    /**
     * <pre>
     * Stages messages for a transaction. They are not delivered before it is committed. A call stages all its messages or
     * none.
     * </pre>
     */
    default void stageEnqueue(io.fila.v1.StageEnqueueRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.StageEnqueueResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getStageEnqueueMethod(), responseObserver);
    }

    /**
     * <pre>
     * Enqueues the staged messages of a transaction, exactly once. The broker keeps the number of the last transaction of
     * each producer; a transaction up to that number is answered as committed before. Answers when all is enqueued.
     * </pre>
     */
    default void commitTransaction(io.fila.v1.CommitTransactionRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.CommitTransactionResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getCommitTransactionMethod(), responseObserver);
    }
  }

  /**
   * Base class for the server implementation of the service FilaService.
   */
  public static abstract class FilaServiceImplBase
      implements io.grpc.BindableService, AsyncService {

    @java.lang.Override public final io.grpc.ServerServiceDefinition bindService() {
      return FilaServiceGrpc.bindService(this);
    }
  }

  /**
   * A stub to allow clients to do asynchronous rpc calls to service FilaService.
   */
  public static final class FilaServiceStub
      extends io.grpc.stub.AbstractAsyncStub<FilaServiceStub> {
    private FilaServiceStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected FilaServiceStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new FilaServiceStub(channel, callOptions);
    }

    /**
     * <pre>
     * What this server is: version, features, limits, and how long it remembers. For every caller that has a valid key.
     * </pre>
     */
    public void describe(io.fila.v1.DescribeRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.DescribeResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getDescribeMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Who has which queue. A server without a cluster answers a map of one member.
     * Every member takes every call, and passes on what is not its own. Such an answer has the trailers `fila-owner`, the
     * address of the member to ask directly the next time, and `fila-map`, the version of the map. A member that cannot
     * pass a call on refuses it (ERROR_KIND_NOT_OWNER), with the same trailers.
     * </pre>
     */
    public void getClusterMap(io.fila.v1.GetClusterMapRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.GetClusterMapResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getGetClusterMapMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Enqueues one message. Answers when the message is durable.
     * </pre>
     */
    public void enqueue(io.fila.v1.EnqueueRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.EnqueueResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getEnqueueMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Enqueues a batch. Each message succeeds or fails by itself; those that succeed become durable in one write.
     * </pre>
     */
    public void enqueueBatch(io.fila.v1.EnqueueBatchRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.EnqueueBatchResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getEnqueueBatchMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * The fast way to produce: many batches in flight, answered in order. Response headers come at once. A batch that is
     * refused is answered with its `error`, and the stream goes on; it ends with UNAVAILABLE or UNAUTHENTICATED when no
     * later batch could succeed on it either.
     * </pre>
     */
    public io.grpc.stub.StreamObserver<io.fila.v1.EnqueueBatchRequest> enqueueStream(
        io.grpc.stub.StreamObserver<io.fila.v1.EnqueueBatchResponse> responseObserver) {
      return io.grpc.stub.ClientCalls.asyncBidiStreamingCall(
          getChannel().newCall(getEnqueueStreamMethod(), getCallOptions()), responseObserver);
    }

    /**
     * <pre>
     * Delivers messages while the stream is open, with at most `max_in_flight` unsettled at a time. Closing the stream
     * returns unsettled messages to the queue at once. The initial metadata `fila-visibility-timeout-ms` is the queue's
     * visibility timeout, for clients that extend their leases; a response tells a new one when it has changed.
     * The broker does not know which messages the application was handed, so it counts all delivered messages as handed.
     * With `Consume` it knows.
     * </pre>
     */
    public void lease(io.fila.v1.LeaseRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.LeaseResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncServerStreamingCall(
          getChannel().newCall(getLeaseMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * As `Lease`, for a client that prefetches and reports which messages its application was handed. Messages that were
     * not handed go back without counting an attempt, however the stream ends. Messages that were handed and not settled
     *   - go back and count an attempt when the caller cancels the call, or when its connection is lost;
     *   - stay leased, until they are settled or their lease ends, when the caller half-closes the stream. The broker
     *     delivers no more and ends the stream with OK: stop, and let the application finish.
     * The caller may change its credit (`max_in_flight`) at any time.
     * </pre>
     */
    public io.grpc.stub.StreamObserver<io.fila.v1.ConsumeRequest> consume(
        io.grpc.stub.StreamObserver<io.fila.v1.ConsumeResponse> responseObserver) {
      return io.grpc.stub.ClientCalls.asyncBidiStreamingCall(
          getChannel().newCall(getConsumeMethod(), getCallOptions()), responseObserver);
    }

    /**
     * <pre>
     * Removes a delivered message for good. NOT_FOUND when no such lease is held.
     * </pre>
     */
    public void ack(io.fila.v1.AckRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.AckResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getAckMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Returns a delivered message to its queue. NOT_FOUND when no such lease is held.
     * </pre>
     */
    public void nack(io.fila.v1.NackRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.NackResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getNackMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Moves the end of a lease. NOT_FOUND when no such lease is held.
     * </pre>
     */
    public void extendLease(io.fila.v1.ExtendLeaseRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.ExtendLeaseResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getExtendLeaseMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * The fast way to settle: many batches in flight, answered in order. Headers and refusals as in `EnqueueStream`.
     * </pre>
     */
    public io.grpc.stub.StreamObserver<io.fila.v1.SettleRequest> settle(
        io.grpc.stub.StreamObserver<io.fila.v1.SettleResponse> responseObserver) {
      return io.grpc.stub.ClientCalls.asyncBidiStreamingCall(
          getChannel().newCall(getSettleMethod(), getCallOptions()), responseObserver);
    }

    /**
     * <pre>
     * Claims, for readers that must be able to read the same messages again, such as stream processors: docs/claims.md.
     * Makes claim `after + 1` of a group: messages chosen in fair order and leased as one. If that claim exists, it is
     * answered again. FAILED_PRECONDITION when it was acked, when claim `after` was never made, or for a lower epoch.
     * </pre>
     */
    public void claim(io.fila.v1.ClaimRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.ClaimResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getClaimMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * The state of a claim. FAILED_PRECONDITION when it was acked or never made.
     * </pre>
     */
    public void describeClaim(io.fila.v1.DescribeClaimRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.DescribeClaimResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getDescribeClaimMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Reads a slice of a claim by position. Until the claim is acked, reading again returns the same messages in the same
     * order. An expired claim is empty. FAILED_PRECONDITION when it was acked or never made, or when it ends during the
     * read.
     * </pre>
     */
    public void readClaim(io.fila.v1.ReadClaimRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.ReadClaimResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncServerStreamingCall(
          getChannel().newCall(getReadClaimMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Acks all claims up to a number: their messages are removed for good. Expired claims are not touched.
     * </pre>
     */
    public void ackClaims(io.fila.v1.AckClaimsRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.AckClaimsResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getAckClaimsMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * The heartbeat: extends all open claims of a group.
     * </pre>
     */
    public void extendClaims(io.fila.v1.ExtendClaimsRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.ExtendClaimsResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getExtendClaimsMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * The position of a group, and what waits for it. A group that the broker does not know is at 0.
     * </pre>
     */
    public void claimFloor(io.fila.v1.ClaimFloorRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.ClaimFloorResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getClaimFloorMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Deletes a group. FAILED_PRECONDITION while it has open claims.
     * </pre>
     */
    public void dropGroup(io.fila.v1.DropGroupRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.DropGroupResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getDropGroupMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Reads the messages of a queue, oldest first, without leasing them. Messages that move meanwhile may be missing.
     * </pre>
     */
    public void readQueue(io.fila.v1.ReadQueueRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.ReadQueueResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncServerStreamingCall(
          getChannel().newCall(getReadQueueMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Stages messages for a transaction. They are not delivered before it is committed. A call stages all its messages or
     * none.
     * </pre>
     */
    public void stageEnqueue(io.fila.v1.StageEnqueueRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.StageEnqueueResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getStageEnqueueMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Enqueues the staged messages of a transaction, exactly once. The broker keeps the number of the last transaction of
     * each producer; a transaction up to that number is answered as committed before. Answers when all is enqueued.
     * </pre>
     */
    public void commitTransaction(io.fila.v1.CommitTransactionRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.CommitTransactionResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getCommitTransactionMethod(), getCallOptions()), request, responseObserver);
    }
  }

  /**
   * A stub to allow clients to do synchronous rpc calls to service FilaService.
   */
  public static final class FilaServiceBlockingV2Stub
      extends io.grpc.stub.AbstractBlockingStub<FilaServiceBlockingV2Stub> {
    private FilaServiceBlockingV2Stub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected FilaServiceBlockingV2Stub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new FilaServiceBlockingV2Stub(channel, callOptions);
    }

    /**
     * <pre>
     * What this server is: version, features, limits, and how long it remembers. For every caller that has a valid key.
     * </pre>
     */
    public io.fila.v1.DescribeResponse describe(io.fila.v1.DescribeRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getDescribeMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Who has which queue. A server without a cluster answers a map of one member.
     * Every member takes every call, and passes on what is not its own. Such an answer has the trailers `fila-owner`, the
     * address of the member to ask directly the next time, and `fila-map`, the version of the map. A member that cannot
     * pass a call on refuses it (ERROR_KIND_NOT_OWNER), with the same trailers.
     * </pre>
     */
    public io.fila.v1.GetClusterMapResponse getClusterMap(io.fila.v1.GetClusterMapRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getGetClusterMapMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Enqueues one message. Answers when the message is durable.
     * </pre>
     */
    public io.fila.v1.EnqueueResponse enqueue(io.fila.v1.EnqueueRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getEnqueueMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Enqueues a batch. Each message succeeds or fails by itself; those that succeed become durable in one write.
     * </pre>
     */
    public io.fila.v1.EnqueueBatchResponse enqueueBatch(io.fila.v1.EnqueueBatchRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getEnqueueBatchMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * The fast way to produce: many batches in flight, answered in order. Response headers come at once. A batch that is
     * refused is answered with its `error`, and the stream goes on; it ends with UNAVAILABLE or UNAUTHENTICATED when no
     * later batch could succeed on it either.
     * </pre>
     */
    @io.grpc.ExperimentalApi("https://github.com/grpc/grpc-java/issues/10918")
    public io.grpc.stub.BlockingClientCall<io.fila.v1.EnqueueBatchRequest, io.fila.v1.EnqueueBatchResponse>
        enqueueStream() {
      return io.grpc.stub.ClientCalls.blockingBidiStreamingCall(
          getChannel(), getEnqueueStreamMethod(), getCallOptions());
    }

    /**
     * <pre>
     * Delivers messages while the stream is open, with at most `max_in_flight` unsettled at a time. Closing the stream
     * returns unsettled messages to the queue at once. The initial metadata `fila-visibility-timeout-ms` is the queue's
     * visibility timeout, for clients that extend their leases; a response tells a new one when it has changed.
     * The broker does not know which messages the application was handed, so it counts all delivered messages as handed.
     * With `Consume` it knows.
     * </pre>
     */
    @io.grpc.ExperimentalApi("https://github.com/grpc/grpc-java/issues/10918")
    public io.grpc.stub.BlockingClientCall<?, io.fila.v1.LeaseResponse>
        lease(io.fila.v1.LeaseRequest request) {
      return io.grpc.stub.ClientCalls.blockingV2ServerStreamingCall(
          getChannel(), getLeaseMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * As `Lease`, for a client that prefetches and reports which messages its application was handed. Messages that were
     * not handed go back without counting an attempt, however the stream ends. Messages that were handed and not settled
     *   - go back and count an attempt when the caller cancels the call, or when its connection is lost;
     *   - stay leased, until they are settled or their lease ends, when the caller half-closes the stream. The broker
     *     delivers no more and ends the stream with OK: stop, and let the application finish.
     * The caller may change its credit (`max_in_flight`) at any time.
     * </pre>
     */
    @io.grpc.ExperimentalApi("https://github.com/grpc/grpc-java/issues/10918")
    public io.grpc.stub.BlockingClientCall<io.fila.v1.ConsumeRequest, io.fila.v1.ConsumeResponse>
        consume() {
      return io.grpc.stub.ClientCalls.blockingBidiStreamingCall(
          getChannel(), getConsumeMethod(), getCallOptions());
    }

    /**
     * <pre>
     * Removes a delivered message for good. NOT_FOUND when no such lease is held.
     * </pre>
     */
    public io.fila.v1.AckResponse ack(io.fila.v1.AckRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getAckMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Returns a delivered message to its queue. NOT_FOUND when no such lease is held.
     * </pre>
     */
    public io.fila.v1.NackResponse nack(io.fila.v1.NackRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getNackMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Moves the end of a lease. NOT_FOUND when no such lease is held.
     * </pre>
     */
    public io.fila.v1.ExtendLeaseResponse extendLease(io.fila.v1.ExtendLeaseRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getExtendLeaseMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * The fast way to settle: many batches in flight, answered in order. Headers and refusals as in `EnqueueStream`.
     * </pre>
     */
    @io.grpc.ExperimentalApi("https://github.com/grpc/grpc-java/issues/10918")
    public io.grpc.stub.BlockingClientCall<io.fila.v1.SettleRequest, io.fila.v1.SettleResponse>
        settle() {
      return io.grpc.stub.ClientCalls.blockingBidiStreamingCall(
          getChannel(), getSettleMethod(), getCallOptions());
    }

    /**
     * <pre>
     * Claims, for readers that must be able to read the same messages again, such as stream processors: docs/claims.md.
     * Makes claim `after + 1` of a group: messages chosen in fair order and leased as one. If that claim exists, it is
     * answered again. FAILED_PRECONDITION when it was acked, when claim `after` was never made, or for a lower epoch.
     * </pre>
     */
    public io.fila.v1.ClaimResponse claim(io.fila.v1.ClaimRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getClaimMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * The state of a claim. FAILED_PRECONDITION when it was acked or never made.
     * </pre>
     */
    public io.fila.v1.DescribeClaimResponse describeClaim(io.fila.v1.DescribeClaimRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getDescribeClaimMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Reads a slice of a claim by position. Until the claim is acked, reading again returns the same messages in the same
     * order. An expired claim is empty. FAILED_PRECONDITION when it was acked or never made, or when it ends during the
     * read.
     * </pre>
     */
    @io.grpc.ExperimentalApi("https://github.com/grpc/grpc-java/issues/10918")
    public io.grpc.stub.BlockingClientCall<?, io.fila.v1.ReadClaimResponse>
        readClaim(io.fila.v1.ReadClaimRequest request) {
      return io.grpc.stub.ClientCalls.blockingV2ServerStreamingCall(
          getChannel(), getReadClaimMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Acks all claims up to a number: their messages are removed for good. Expired claims are not touched.
     * </pre>
     */
    public io.fila.v1.AckClaimsResponse ackClaims(io.fila.v1.AckClaimsRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getAckClaimsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * The heartbeat: extends all open claims of a group.
     * </pre>
     */
    public io.fila.v1.ExtendClaimsResponse extendClaims(io.fila.v1.ExtendClaimsRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getExtendClaimsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * The position of a group, and what waits for it. A group that the broker does not know is at 0.
     * </pre>
     */
    public io.fila.v1.ClaimFloorResponse claimFloor(io.fila.v1.ClaimFloorRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getClaimFloorMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Deletes a group. FAILED_PRECONDITION while it has open claims.
     * </pre>
     */
    public io.fila.v1.DropGroupResponse dropGroup(io.fila.v1.DropGroupRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getDropGroupMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Reads the messages of a queue, oldest first, without leasing them. Messages that move meanwhile may be missing.
     * </pre>
     */
    @io.grpc.ExperimentalApi("https://github.com/grpc/grpc-java/issues/10918")
    public io.grpc.stub.BlockingClientCall<?, io.fila.v1.ReadQueueResponse>
        readQueue(io.fila.v1.ReadQueueRequest request) {
      return io.grpc.stub.ClientCalls.blockingV2ServerStreamingCall(
          getChannel(), getReadQueueMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Stages messages for a transaction. They are not delivered before it is committed. A call stages all its messages or
     * none.
     * </pre>
     */
    public io.fila.v1.StageEnqueueResponse stageEnqueue(io.fila.v1.StageEnqueueRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getStageEnqueueMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Enqueues the staged messages of a transaction, exactly once. The broker keeps the number of the last transaction of
     * each producer; a transaction up to that number is answered as committed before. Answers when all is enqueued.
     * </pre>
     */
    public io.fila.v1.CommitTransactionResponse commitTransaction(io.fila.v1.CommitTransactionRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getCommitTransactionMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do limited synchronous rpc calls to service FilaService.
   */
  public static final class FilaServiceBlockingStub
      extends io.grpc.stub.AbstractBlockingStub<FilaServiceBlockingStub> {
    private FilaServiceBlockingStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected FilaServiceBlockingStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new FilaServiceBlockingStub(channel, callOptions);
    }

    /**
     * <pre>
     * What this server is: version, features, limits, and how long it remembers. For every caller that has a valid key.
     * </pre>
     */
    public io.fila.v1.DescribeResponse describe(io.fila.v1.DescribeRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getDescribeMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Who has which queue. A server without a cluster answers a map of one member.
     * Every member takes every call, and passes on what is not its own. Such an answer has the trailers `fila-owner`, the
     * address of the member to ask directly the next time, and `fila-map`, the version of the map. A member that cannot
     * pass a call on refuses it (ERROR_KIND_NOT_OWNER), with the same trailers.
     * </pre>
     */
    public io.fila.v1.GetClusterMapResponse getClusterMap(io.fila.v1.GetClusterMapRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getGetClusterMapMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Enqueues one message. Answers when the message is durable.
     * </pre>
     */
    public io.fila.v1.EnqueueResponse enqueue(io.fila.v1.EnqueueRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getEnqueueMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Enqueues a batch. Each message succeeds or fails by itself; those that succeed become durable in one write.
     * </pre>
     */
    public io.fila.v1.EnqueueBatchResponse enqueueBatch(io.fila.v1.EnqueueBatchRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getEnqueueBatchMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Delivers messages while the stream is open, with at most `max_in_flight` unsettled at a time. Closing the stream
     * returns unsettled messages to the queue at once. The initial metadata `fila-visibility-timeout-ms` is the queue's
     * visibility timeout, for clients that extend their leases; a response tells a new one when it has changed.
     * The broker does not know which messages the application was handed, so it counts all delivered messages as handed.
     * With `Consume` it knows.
     * </pre>
     */
    public java.util.Iterator<io.fila.v1.LeaseResponse> lease(
        io.fila.v1.LeaseRequest request) {
      return io.grpc.stub.ClientCalls.blockingServerStreamingCall(
          getChannel(), getLeaseMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Removes a delivered message for good. NOT_FOUND when no such lease is held.
     * </pre>
     */
    public io.fila.v1.AckResponse ack(io.fila.v1.AckRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getAckMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Returns a delivered message to its queue. NOT_FOUND when no such lease is held.
     * </pre>
     */
    public io.fila.v1.NackResponse nack(io.fila.v1.NackRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getNackMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Moves the end of a lease. NOT_FOUND when no such lease is held.
     * </pre>
     */
    public io.fila.v1.ExtendLeaseResponse extendLease(io.fila.v1.ExtendLeaseRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getExtendLeaseMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Claims, for readers that must be able to read the same messages again, such as stream processors: docs/claims.md.
     * Makes claim `after + 1` of a group: messages chosen in fair order and leased as one. If that claim exists, it is
     * answered again. FAILED_PRECONDITION when it was acked, when claim `after` was never made, or for a lower epoch.
     * </pre>
     */
    public io.fila.v1.ClaimResponse claim(io.fila.v1.ClaimRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getClaimMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * The state of a claim. FAILED_PRECONDITION when it was acked or never made.
     * </pre>
     */
    public io.fila.v1.DescribeClaimResponse describeClaim(io.fila.v1.DescribeClaimRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getDescribeClaimMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Reads a slice of a claim by position. Until the claim is acked, reading again returns the same messages in the same
     * order. An expired claim is empty. FAILED_PRECONDITION when it was acked or never made, or when it ends during the
     * read.
     * </pre>
     */
    public java.util.Iterator<io.fila.v1.ReadClaimResponse> readClaim(
        io.fila.v1.ReadClaimRequest request) {
      return io.grpc.stub.ClientCalls.blockingServerStreamingCall(
          getChannel(), getReadClaimMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Acks all claims up to a number: their messages are removed for good. Expired claims are not touched.
     * </pre>
     */
    public io.fila.v1.AckClaimsResponse ackClaims(io.fila.v1.AckClaimsRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getAckClaimsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * The heartbeat: extends all open claims of a group.
     * </pre>
     */
    public io.fila.v1.ExtendClaimsResponse extendClaims(io.fila.v1.ExtendClaimsRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getExtendClaimsMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * The position of a group, and what waits for it. A group that the broker does not know is at 0.
     * </pre>
     */
    public io.fila.v1.ClaimFloorResponse claimFloor(io.fila.v1.ClaimFloorRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getClaimFloorMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Deletes a group. FAILED_PRECONDITION while it has open claims.
     * </pre>
     */
    public io.fila.v1.DropGroupResponse dropGroup(io.fila.v1.DropGroupRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getDropGroupMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Reads the messages of a queue, oldest first, without leasing them. Messages that move meanwhile may be missing.
     * </pre>
     */
    public java.util.Iterator<io.fila.v1.ReadQueueResponse> readQueue(
        io.fila.v1.ReadQueueRequest request) {
      return io.grpc.stub.ClientCalls.blockingServerStreamingCall(
          getChannel(), getReadQueueMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Stages messages for a transaction. They are not delivered before it is committed. A call stages all its messages or
     * none.
     * </pre>
     */
    public io.fila.v1.StageEnqueueResponse stageEnqueue(io.fila.v1.StageEnqueueRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getStageEnqueueMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Enqueues the staged messages of a transaction, exactly once. The broker keeps the number of the last transaction of
     * each producer; a transaction up to that number is answered as committed before. Answers when all is enqueued.
     * </pre>
     */
    public io.fila.v1.CommitTransactionResponse commitTransaction(io.fila.v1.CommitTransactionRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getCommitTransactionMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do ListenableFuture-style rpc calls to service FilaService.
   */
  public static final class FilaServiceFutureStub
      extends io.grpc.stub.AbstractFutureStub<FilaServiceFutureStub> {
    private FilaServiceFutureStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected FilaServiceFutureStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new FilaServiceFutureStub(channel, callOptions);
    }

    /**
     * <pre>
     * What this server is: version, features, limits, and how long it remembers. For every caller that has a valid key.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<io.fila.v1.DescribeResponse> describe(
        io.fila.v1.DescribeRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getDescribeMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Who has which queue. A server without a cluster answers a map of one member.
     * Every member takes every call, and passes on what is not its own. Such an answer has the trailers `fila-owner`, the
     * address of the member to ask directly the next time, and `fila-map`, the version of the map. A member that cannot
     * pass a call on refuses it (ERROR_KIND_NOT_OWNER), with the same trailers.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<io.fila.v1.GetClusterMapResponse> getClusterMap(
        io.fila.v1.GetClusterMapRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getGetClusterMapMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Enqueues one message. Answers when the message is durable.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<io.fila.v1.EnqueueResponse> enqueue(
        io.fila.v1.EnqueueRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getEnqueueMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Enqueues a batch. Each message succeeds or fails by itself; those that succeed become durable in one write.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<io.fila.v1.EnqueueBatchResponse> enqueueBatch(
        io.fila.v1.EnqueueBatchRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getEnqueueBatchMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Removes a delivered message for good. NOT_FOUND when no such lease is held.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<io.fila.v1.AckResponse> ack(
        io.fila.v1.AckRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getAckMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Returns a delivered message to its queue. NOT_FOUND when no such lease is held.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<io.fila.v1.NackResponse> nack(
        io.fila.v1.NackRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getNackMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Moves the end of a lease. NOT_FOUND when no such lease is held.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<io.fila.v1.ExtendLeaseResponse> extendLease(
        io.fila.v1.ExtendLeaseRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getExtendLeaseMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Claims, for readers that must be able to read the same messages again, such as stream processors: docs/claims.md.
     * Makes claim `after + 1` of a group: messages chosen in fair order and leased as one. If that claim exists, it is
     * answered again. FAILED_PRECONDITION when it was acked, when claim `after` was never made, or for a lower epoch.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<io.fila.v1.ClaimResponse> claim(
        io.fila.v1.ClaimRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getClaimMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * The state of a claim. FAILED_PRECONDITION when it was acked or never made.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<io.fila.v1.DescribeClaimResponse> describeClaim(
        io.fila.v1.DescribeClaimRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getDescribeClaimMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Acks all claims up to a number: their messages are removed for good. Expired claims are not touched.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<io.fila.v1.AckClaimsResponse> ackClaims(
        io.fila.v1.AckClaimsRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getAckClaimsMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * The heartbeat: extends all open claims of a group.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<io.fila.v1.ExtendClaimsResponse> extendClaims(
        io.fila.v1.ExtendClaimsRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getExtendClaimsMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * The position of a group, and what waits for it. A group that the broker does not know is at 0.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<io.fila.v1.ClaimFloorResponse> claimFloor(
        io.fila.v1.ClaimFloorRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getClaimFloorMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Deletes a group. FAILED_PRECONDITION while it has open claims.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<io.fila.v1.DropGroupResponse> dropGroup(
        io.fila.v1.DropGroupRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getDropGroupMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Stages messages for a transaction. They are not delivered before it is committed. A call stages all its messages or
     * none.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<io.fila.v1.StageEnqueueResponse> stageEnqueue(
        io.fila.v1.StageEnqueueRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getStageEnqueueMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Enqueues the staged messages of a transaction, exactly once. The broker keeps the number of the last transaction of
     * each producer; a transaction up to that number is answered as committed before. Answers when all is enqueued.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<io.fila.v1.CommitTransactionResponse> commitTransaction(
        io.fila.v1.CommitTransactionRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getCommitTransactionMethod(), getCallOptions()), request);
    }
  }

  private static final int METHODID_DESCRIBE = 0;
  private static final int METHODID_GET_CLUSTER_MAP = 1;
  private static final int METHODID_ENQUEUE = 2;
  private static final int METHODID_ENQUEUE_BATCH = 3;
  private static final int METHODID_LEASE = 4;
  private static final int METHODID_ACK = 5;
  private static final int METHODID_NACK = 6;
  private static final int METHODID_EXTEND_LEASE = 7;
  private static final int METHODID_CLAIM = 8;
  private static final int METHODID_DESCRIBE_CLAIM = 9;
  private static final int METHODID_READ_CLAIM = 10;
  private static final int METHODID_ACK_CLAIMS = 11;
  private static final int METHODID_EXTEND_CLAIMS = 12;
  private static final int METHODID_CLAIM_FLOOR = 13;
  private static final int METHODID_DROP_GROUP = 14;
  private static final int METHODID_READ_QUEUE = 15;
  private static final int METHODID_STAGE_ENQUEUE = 16;
  private static final int METHODID_COMMIT_TRANSACTION = 17;
  private static final int METHODID_ENQUEUE_STREAM = 18;
  private static final int METHODID_CONSUME = 19;
  private static final int METHODID_SETTLE = 20;

  private static final class MethodHandlers<Req, Resp> implements
      io.grpc.stub.ServerCalls.UnaryMethod<Req, Resp>,
      io.grpc.stub.ServerCalls.ServerStreamingMethod<Req, Resp>,
      io.grpc.stub.ServerCalls.ClientStreamingMethod<Req, Resp>,
      io.grpc.stub.ServerCalls.BidiStreamingMethod<Req, Resp> {
    private final AsyncService serviceImpl;
    private final int methodId;

    MethodHandlers(AsyncService serviceImpl, int methodId) {
      this.serviceImpl = serviceImpl;
      this.methodId = methodId;
    }

    @java.lang.Override
    @java.lang.SuppressWarnings("unchecked")
    public void invoke(Req request, io.grpc.stub.StreamObserver<Resp> responseObserver) {
      switch (methodId) {
        case METHODID_DESCRIBE:
          serviceImpl.describe((io.fila.v1.DescribeRequest) request,
              (io.grpc.stub.StreamObserver<io.fila.v1.DescribeResponse>) responseObserver);
          break;
        case METHODID_GET_CLUSTER_MAP:
          serviceImpl.getClusterMap((io.fila.v1.GetClusterMapRequest) request,
              (io.grpc.stub.StreamObserver<io.fila.v1.GetClusterMapResponse>) responseObserver);
          break;
        case METHODID_ENQUEUE:
          serviceImpl.enqueue((io.fila.v1.EnqueueRequest) request,
              (io.grpc.stub.StreamObserver<io.fila.v1.EnqueueResponse>) responseObserver);
          break;
        case METHODID_ENQUEUE_BATCH:
          serviceImpl.enqueueBatch((io.fila.v1.EnqueueBatchRequest) request,
              (io.grpc.stub.StreamObserver<io.fila.v1.EnqueueBatchResponse>) responseObserver);
          break;
        case METHODID_LEASE:
          serviceImpl.lease((io.fila.v1.LeaseRequest) request,
              (io.grpc.stub.StreamObserver<io.fila.v1.LeaseResponse>) responseObserver);
          break;
        case METHODID_ACK:
          serviceImpl.ack((io.fila.v1.AckRequest) request,
              (io.grpc.stub.StreamObserver<io.fila.v1.AckResponse>) responseObserver);
          break;
        case METHODID_NACK:
          serviceImpl.nack((io.fila.v1.NackRequest) request,
              (io.grpc.stub.StreamObserver<io.fila.v1.NackResponse>) responseObserver);
          break;
        case METHODID_EXTEND_LEASE:
          serviceImpl.extendLease((io.fila.v1.ExtendLeaseRequest) request,
              (io.grpc.stub.StreamObserver<io.fila.v1.ExtendLeaseResponse>) responseObserver);
          break;
        case METHODID_CLAIM:
          serviceImpl.claim((io.fila.v1.ClaimRequest) request,
              (io.grpc.stub.StreamObserver<io.fila.v1.ClaimResponse>) responseObserver);
          break;
        case METHODID_DESCRIBE_CLAIM:
          serviceImpl.describeClaim((io.fila.v1.DescribeClaimRequest) request,
              (io.grpc.stub.StreamObserver<io.fila.v1.DescribeClaimResponse>) responseObserver);
          break;
        case METHODID_READ_CLAIM:
          serviceImpl.readClaim((io.fila.v1.ReadClaimRequest) request,
              (io.grpc.stub.StreamObserver<io.fila.v1.ReadClaimResponse>) responseObserver);
          break;
        case METHODID_ACK_CLAIMS:
          serviceImpl.ackClaims((io.fila.v1.AckClaimsRequest) request,
              (io.grpc.stub.StreamObserver<io.fila.v1.AckClaimsResponse>) responseObserver);
          break;
        case METHODID_EXTEND_CLAIMS:
          serviceImpl.extendClaims((io.fila.v1.ExtendClaimsRequest) request,
              (io.grpc.stub.StreamObserver<io.fila.v1.ExtendClaimsResponse>) responseObserver);
          break;
        case METHODID_CLAIM_FLOOR:
          serviceImpl.claimFloor((io.fila.v1.ClaimFloorRequest) request,
              (io.grpc.stub.StreamObserver<io.fila.v1.ClaimFloorResponse>) responseObserver);
          break;
        case METHODID_DROP_GROUP:
          serviceImpl.dropGroup((io.fila.v1.DropGroupRequest) request,
              (io.grpc.stub.StreamObserver<io.fila.v1.DropGroupResponse>) responseObserver);
          break;
        case METHODID_READ_QUEUE:
          serviceImpl.readQueue((io.fila.v1.ReadQueueRequest) request,
              (io.grpc.stub.StreamObserver<io.fila.v1.ReadQueueResponse>) responseObserver);
          break;
        case METHODID_STAGE_ENQUEUE:
          serviceImpl.stageEnqueue((io.fila.v1.StageEnqueueRequest) request,
              (io.grpc.stub.StreamObserver<io.fila.v1.StageEnqueueResponse>) responseObserver);
          break;
        case METHODID_COMMIT_TRANSACTION:
          serviceImpl.commitTransaction((io.fila.v1.CommitTransactionRequest) request,
              (io.grpc.stub.StreamObserver<io.fila.v1.CommitTransactionResponse>) responseObserver);
          break;
        default:
          throw new AssertionError();
      }
    }

    @java.lang.Override
    @java.lang.SuppressWarnings("unchecked")
    public io.grpc.stub.StreamObserver<Req> invoke(
        io.grpc.stub.StreamObserver<Resp> responseObserver) {
      switch (methodId) {
        case METHODID_ENQUEUE_STREAM:
          return (io.grpc.stub.StreamObserver<Req>) serviceImpl.enqueueStream(
              (io.grpc.stub.StreamObserver<io.fila.v1.EnqueueBatchResponse>) responseObserver);
        case METHODID_CONSUME:
          return (io.grpc.stub.StreamObserver<Req>) serviceImpl.consume(
              (io.grpc.stub.StreamObserver<io.fila.v1.ConsumeResponse>) responseObserver);
        case METHODID_SETTLE:
          return (io.grpc.stub.StreamObserver<Req>) serviceImpl.settle(
              (io.grpc.stub.StreamObserver<io.fila.v1.SettleResponse>) responseObserver);
        default:
          throw new AssertionError();
      }
    }
  }

  public static final io.grpc.ServerServiceDefinition bindService(AsyncService service) {
    return io.grpc.ServerServiceDefinition.builder(getServiceDescriptor())
        .addMethod(
          getDescribeMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              io.fila.v1.DescribeRequest,
              io.fila.v1.DescribeResponse>(
                service, METHODID_DESCRIBE)))
        .addMethod(
          getGetClusterMapMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              io.fila.v1.GetClusterMapRequest,
              io.fila.v1.GetClusterMapResponse>(
                service, METHODID_GET_CLUSTER_MAP)))
        .addMethod(
          getEnqueueMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              io.fila.v1.EnqueueRequest,
              io.fila.v1.EnqueueResponse>(
                service, METHODID_ENQUEUE)))
        .addMethod(
          getEnqueueBatchMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              io.fila.v1.EnqueueBatchRequest,
              io.fila.v1.EnqueueBatchResponse>(
                service, METHODID_ENQUEUE_BATCH)))
        .addMethod(
          getEnqueueStreamMethod(),
          io.grpc.stub.ServerCalls.asyncBidiStreamingCall(
            new MethodHandlers<
              io.fila.v1.EnqueueBatchRequest,
              io.fila.v1.EnqueueBatchResponse>(
                service, METHODID_ENQUEUE_STREAM)))
        .addMethod(
          getLeaseMethod(),
          io.grpc.stub.ServerCalls.asyncServerStreamingCall(
            new MethodHandlers<
              io.fila.v1.LeaseRequest,
              io.fila.v1.LeaseResponse>(
                service, METHODID_LEASE)))
        .addMethod(
          getConsumeMethod(),
          io.grpc.stub.ServerCalls.asyncBidiStreamingCall(
            new MethodHandlers<
              io.fila.v1.ConsumeRequest,
              io.fila.v1.ConsumeResponse>(
                service, METHODID_CONSUME)))
        .addMethod(
          getAckMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              io.fila.v1.AckRequest,
              io.fila.v1.AckResponse>(
                service, METHODID_ACK)))
        .addMethod(
          getNackMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              io.fila.v1.NackRequest,
              io.fila.v1.NackResponse>(
                service, METHODID_NACK)))
        .addMethod(
          getExtendLeaseMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              io.fila.v1.ExtendLeaseRequest,
              io.fila.v1.ExtendLeaseResponse>(
                service, METHODID_EXTEND_LEASE)))
        .addMethod(
          getSettleMethod(),
          io.grpc.stub.ServerCalls.asyncBidiStreamingCall(
            new MethodHandlers<
              io.fila.v1.SettleRequest,
              io.fila.v1.SettleResponse>(
                service, METHODID_SETTLE)))
        .addMethod(
          getClaimMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              io.fila.v1.ClaimRequest,
              io.fila.v1.ClaimResponse>(
                service, METHODID_CLAIM)))
        .addMethod(
          getDescribeClaimMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              io.fila.v1.DescribeClaimRequest,
              io.fila.v1.DescribeClaimResponse>(
                service, METHODID_DESCRIBE_CLAIM)))
        .addMethod(
          getReadClaimMethod(),
          io.grpc.stub.ServerCalls.asyncServerStreamingCall(
            new MethodHandlers<
              io.fila.v1.ReadClaimRequest,
              io.fila.v1.ReadClaimResponse>(
                service, METHODID_READ_CLAIM)))
        .addMethod(
          getAckClaimsMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              io.fila.v1.AckClaimsRequest,
              io.fila.v1.AckClaimsResponse>(
                service, METHODID_ACK_CLAIMS)))
        .addMethod(
          getExtendClaimsMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              io.fila.v1.ExtendClaimsRequest,
              io.fila.v1.ExtendClaimsResponse>(
                service, METHODID_EXTEND_CLAIMS)))
        .addMethod(
          getClaimFloorMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              io.fila.v1.ClaimFloorRequest,
              io.fila.v1.ClaimFloorResponse>(
                service, METHODID_CLAIM_FLOOR)))
        .addMethod(
          getDropGroupMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              io.fila.v1.DropGroupRequest,
              io.fila.v1.DropGroupResponse>(
                service, METHODID_DROP_GROUP)))
        .addMethod(
          getReadQueueMethod(),
          io.grpc.stub.ServerCalls.asyncServerStreamingCall(
            new MethodHandlers<
              io.fila.v1.ReadQueueRequest,
              io.fila.v1.ReadQueueResponse>(
                service, METHODID_READ_QUEUE)))
        .addMethod(
          getStageEnqueueMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              io.fila.v1.StageEnqueueRequest,
              io.fila.v1.StageEnqueueResponse>(
                service, METHODID_STAGE_ENQUEUE)))
        .addMethod(
          getCommitTransactionMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              io.fila.v1.CommitTransactionRequest,
              io.fila.v1.CommitTransactionResponse>(
                service, METHODID_COMMIT_TRANSACTION)))
        .build();
  }

  private static abstract class FilaServiceBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoFileDescriptorSupplier, io.grpc.protobuf.ProtoServiceDescriptorSupplier {
    FilaServiceBaseDescriptorSupplier() {}

    @java.lang.Override
    public com.google.protobuf.Descriptors.FileDescriptor getFileDescriptor() {
      return io.fila.v1.Service.getDescriptor();
    }

    @java.lang.Override
    public com.google.protobuf.Descriptors.ServiceDescriptor getServiceDescriptor() {
      return getFileDescriptor().findServiceByName("FilaService");
    }
  }

  private static final class FilaServiceFileDescriptorSupplier
      extends FilaServiceBaseDescriptorSupplier {
    FilaServiceFileDescriptorSupplier() {}
  }

  private static final class FilaServiceMethodDescriptorSupplier
      extends FilaServiceBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoMethodDescriptorSupplier {
    private final java.lang.String methodName;

    FilaServiceMethodDescriptorSupplier(java.lang.String methodName) {
      this.methodName = methodName;
    }

    @java.lang.Override
    public com.google.protobuf.Descriptors.MethodDescriptor getMethodDescriptor() {
      return getServiceDescriptor().findMethodByName(methodName);
    }
  }

  private static volatile io.grpc.ServiceDescriptor serviceDescriptor;

  public static io.grpc.ServiceDescriptor getServiceDescriptor() {
    io.grpc.ServiceDescriptor result = serviceDescriptor;
    if (result == null) {
      synchronized (FilaServiceGrpc.class) {
        result = serviceDescriptor;
        if (result == null) {
          serviceDescriptor = result = io.grpc.ServiceDescriptor.newBuilder(SERVICE_NAME)
              .setSchemaDescriptor(new FilaServiceFileDescriptorSupplier())
              .addMethod(getDescribeMethod())
              .addMethod(getGetClusterMapMethod())
              .addMethod(getEnqueueMethod())
              .addMethod(getEnqueueBatchMethod())
              .addMethod(getEnqueueStreamMethod())
              .addMethod(getLeaseMethod())
              .addMethod(getConsumeMethod())
              .addMethod(getAckMethod())
              .addMethod(getNackMethod())
              .addMethod(getExtendLeaseMethod())
              .addMethod(getSettleMethod())
              .addMethod(getClaimMethod())
              .addMethod(getDescribeClaimMethod())
              .addMethod(getReadClaimMethod())
              .addMethod(getAckClaimsMethod())
              .addMethod(getExtendClaimsMethod())
              .addMethod(getClaimFloorMethod())
              .addMethod(getDropGroupMethod())
              .addMethod(getReadQueueMethod())
              .addMethod(getStageEnqueueMethod())
              .addMethod(getCommitTransactionMethod())
              .build();
        }
      }
    }
    return result;
  }
}
